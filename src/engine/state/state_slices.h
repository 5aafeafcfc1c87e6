// A prefix's state on disk as slices: the states of consecutive stretches of its tokens, each saved
// and restored by itself between two steps. Bytes: docs/formats/packed-state.md.
//
// Threads: plain data. Errors: parse_slices(): kCorrupt; whatever bytes it is given, what it
// returns lies within them.
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
