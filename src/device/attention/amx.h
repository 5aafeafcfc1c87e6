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

// While one lives, the thread's tiles are configured for us. ggml's own AMX kernels configure a
// thread once and rely on it: what was there is put back.
class AmxScope {
 public:
  explicit AmxScope(bool enabled);
  ~AmxScope();
  AmxScope(const AmxScope&) = delete;
  AmxScope& operator=(const AmxScope&) = delete;

 private:
  bool enabled_;
  alignas(64) unsigned char saved_[64] = {};
};

// As dot_rows() and mix_rows(), inside an AmxScope. What they read: rows and weights up to a
// multiple of 16 rows, each row up to a multiple of 64 bytes with zeroes behind n_channels; keys up
// to kReadPast behind the last tile. What they write: up to a multiple of 16 rows.
// n_channels 32: a part of a key with a scale of its own; else the whole key.
void amx_dot_rows(const DotRows& work);
void amx_mix_rows(const MixRows& work);

}  // namespace slipstream::turbo
