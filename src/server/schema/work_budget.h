// WorkBudget: how many more steps a conversion may take. A step takes some nanoseconds to a
// microsecond. A schema of a few hundred bytes can ask for exponential work. Counting steps stops
// it after the same amount of work on every machine; a clock would not.
//
// Threads: thread-compatible.
// Errors:  kUnsupported once the budget is spent, and on every later call.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/result.h"

namespace slipstream {

class WorkBudget {
 public:
  explicit WorkBudget(std::size_t n_steps) : n_steps_left_(n_steps) {}

  [[nodiscard]] Result<void> spend(std::size_t n_steps) {
    n_steps_left_ -= std::min(n_steps, n_steps_left_);
    if (n_steps_left_ > 0) return {};
    return fail(Code::kUnsupported, "takes too long to convert");
  }

 private:
  std::size_t n_steps_left_;
};

}  // namespace slipstream
