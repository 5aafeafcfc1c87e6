// The speed matrix: which cells are measured, and in which order.
//
// Depths come one after the other, so that what is kept for a depth can be removed when it is
// done. Within a depth, each repeat measures every cell once. Schemes are measured next to each
// other, starting with another one each time, so that a temporary slowdown of the machine
// affects all alike.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <set>
#include <vector>

#include "bench/speed/cell.h"

namespace slipstream::bench {

struct Matrix {
  // The others are compared with the first scheme: at its default, and at the best of stock's
  // settings that were measured.
  std::vector<std::string> kv;
  std::vector<int> depths;
  std::vector<int> n_sequences;
  bool has_shared = false;  // several sequences are measured a second time, sharing the depth
  int n_repeats = 3;
};

struct Turn {
  Cell cell;
  int repeat = 0;
  auto operator<=>(const Turn&) const = default;
};

// The cells of one depth, in rows of schemes to compare with each other.
[[nodiscard]] std::vector<std::vector<Cell>> cells_at(const Matrix& matrix, int depth);

[[nodiscard]] std::vector<Turn> plan_turns(const Matrix& matrix, const std::set<Turn>& done);

// An estimate for the remaining time, in seconds for Qwen3-0.6B on two cores, and in
// arbitrary units elsewhere. `task` gives the lengths of prompt and answer. The first turn at
// a depth fills it.
[[nodiscard]] double guess_seconds(const Turn& turn, const Matrix& matrix, const CellTask& task);

}  // namespace slipstream::bench
