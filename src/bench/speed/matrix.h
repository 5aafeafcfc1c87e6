// The speed matrix: which cells are measured, in which order.
//
// Depth by depth, so that what is kept of a depth can go when it is done. Within a depth a repeat
// measures every cell once, schemes next to each other and beginning with another one each time:
// what slows the machine for a while slows all of them alike.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <set>
#include <vector>

#include "bench/speed/cell.h"

namespace slipstream::bench {

struct Matrix {
  // The first is what the others are compared with: at its default, and at its best of with and
  // without flash attention, where both are there.
  std::vector<std::string> kv;
  std::vector<int> depths;
  std::vector<int> n_sequences;
  int n_repeats = 3;
};

struct Turn {
  Cell cell;
  int repeat = 0;
  auto operator<=>(const Turn&) const = default;
};

[[nodiscard]] std::vector<Turn> plan_turns(const Matrix& matrix, const std::set<Turn>& done);

// A guess for the time that is left: seconds of Qwen3-0.6B on two cores, on others as many units.
// `task` says how long prompt and answer are. Whoever comes first to a depth fills it.
[[nodiscard]] double guess_seconds(const Turn& turn, const Matrix& matrix, const CellTask& task);

}  // namespace slipstream::bench
