// A prefix's state on disk as slices: the states of consecutive ranges of its tokens. Each is saved
// and restored by itself between two steps. Bytes: docs/formats/packed-state.md.
//
// Threads: plain data.
// Errors:  parse_slices(): kCorrupt; for any input, what it returns lies within the bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace slipstream {

struct StateSlice {
  int first;  // tokens [first, end)
  int end;
  std::span<const std::byte> state;
};

void append_slice(std::vector<std::byte>& bytes, int n_tokens, std::span<const std::byte> state);

// n_tokens: of all slices together.
[[nodiscard]] Result<std::vector<StateSlice>> parse_slices(std::span<const std::byte> bytes,
                                                           int n_tokens);

}  // namespace slipstream
