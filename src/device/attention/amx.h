// dot_rows and weighted_sum_rows on AMX matrix tiles: sixteen rows cost little more than one.
//
// A tile of sixteen tokens has the layout of AMX's second operand, so nothing is rearranged.
// Highway does not know AMX, hence intrinsics.
//
// Threads: thread-safe; the tile registers belong to the thread. Errors: none.
#pragma once

#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo {

// Whether this machine has AMX for bytes and the kernel lets this process use it.
[[nodiscard]] bool has_amx();

// Rows of a matrix tile.
inline constexpr int kAmxRows = 16;

// What the tiles are configured for. Fewer rows take less time.
struct AmxShape {
  int key_rows;           // of products with keys, at most kAmxRows
  int key_part_channels;  // 32, or 64 and more
  int value_rows;
};

// While one lives, the thread's tiles are configured for us. ggml's own AMX kernels configure a
// thread once and rely on it: the destructor restores their configuration.
class AmxScope {
 public:
  AmxScope(bool enabled, const AmxShape& shape);
  ~AmxScope();
  AmxScope(const AmxScope&) = delete;
  AmxScope& operator=(const AmxScope&) = delete;

 private:
  bool enabled_;
  alignas(64) unsigned char saved_[64] = {};
};

// As dot_rows() and weighted_sum_rows(), reading and writing rows in groups of as many as the scope
// has.
// REQUIRES: an AmxScope of this thread, for n_rows rows or kAmxRows, and for the channels of a
// part. Memory for whole groups of rows, weights, dots and sums. Rows of queries that end at a
// multiple of 64 bytes, with zeroes behind n_channels. Weights of 0 behind the last tile, and
// memory of four tiles of values. Behind the last tile of keys, kReadPast bytes that can be read.
void amx_dot_rows(const DotRows& work);
void amx_weighted_sum_rows(const WeightedSumRows& work);

}  // namespace slipstream::turbo
