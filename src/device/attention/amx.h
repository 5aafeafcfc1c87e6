// dot_rows and weighted_sum_rows on AMX matrix tiles: sixteen rows cost little more than one.
//
// A tile of sixteen tokens is laid out as AMX wants its second operand, so nothing is rearranged.
// Highway does not know AMX, hence intrinsics.
//
// Threads: thread-safe; the tile registers belong to the thread. Errors: none.
#pragma once

#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo {

// Whether this machine has AMX for bytes and the kernel lets this process use it.
[[nodiscard]] bool has_amx();

// What the tiles are configured for. Fewer rows take less time.
struct AmxShape {
  int key_rows;           // of products with keys, at most 16
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

// As dot_rows() and weighted_sum_rows(). Rows are read and written in groups of as many as the
// scope has, at most 16. REQUIRES: an AmxScope of this thread whose shape has n_rows rows, or 16,
// and the channels of a part; rows, weights, dots and sums have memory for whole groups; a row of
// queries has memory up to a multiple of 64 bytes, with zeroes behind n_channels; a row of weights
// has zeroes behind the last tile, and values have memory for four; kReadPast bytes behind the last
// tile of keys can be read.
void amx_dot_rows(const DotRows& work);
void amx_weighted_sum_rows(const WeightedSumRows& work);

}  // namespace slipstream::turbo
