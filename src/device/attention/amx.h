// dot_rows and mix_rows on AMX matrix tiles: sixteen rows for little more than the price of one.
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
// thread once and rely on it: what was there is put back.
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

// As dot_rows() and mix_rows(), inside an AmxScope with at least as many rows, or 16. What they
// read: rows and weights up to a multiple of that many, each row up to a multiple of 64 bytes with
// zeroes behind n_channels; keys up to kReadPast behind the last tile. What they write: as many
// rows as they read.
void amx_dot_rows(const DotRows& work);
void amx_mix_rows(const MixRows& work);

}  // namespace slipstream::turbo
