// dot_rows and weighted_sum_rows on AMX matrix tiles: sixteen rows cost little more than one.
//
// A tile of sixteen tokens has the layout of AMX's second operand, so nothing is rearranged.
// Intrinsics are used because Highway does not support AMX.
//
// Threads: thread-safe; each thread has its own tile registers. Errors: none.
#pragma once

#include "device/attention/chunk_kernels.h"
#include "device/tile_registers.h"

namespace slipstream::turbo {

// Rows of a matrix tile.
inline constexpr int kAmxRows = 16;

// The shape that the tile registers are configured for. Fewer rows take less time.
struct AmxShape {
  int key_rows;           // for products with keys, at most kAmxRows
  int key_part_channels;  // if at most 32, tiles are narrower
  int value_rows;
};

// Configures the thread's tile registers for these kernels during its lifetime.
class AmxScope {
 public:
  AmxScope(bool enabled, const AmxShape& shape);

 private:
  TileScope scope_;
};

// The same as dot_rows() and weighted_sum_rows(). They read and write rows in groups of as many as
// the scope has.
// REQUIRES:
//   - This thread has an AmxScope, for n_rows rows or kAmxRows, and for the channels of a part.
//   - Rows, weights, dots and sums have memory for whole groups.
//   - Rows of queries are padded to a multiple of 64 bytes, with zeroes behind n_channels.
//   - Weights behind the last tile are 0, and values have memory for four tiles.
//   - kReadPast bytes behind the last tile of keys can be read.
void amx_dot_rows(const DotRows& work);
void amx_weighted_sum_rows(const WeightedSumRows& work);

}  // namespace slipstream::turbo
