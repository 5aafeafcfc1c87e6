// What a scheme has got right of each kind of work, and what f16 has, as JSON (report.h).
//
// Threads: pure functions. Errors: none.
#pragma once

#include <vector>

#include "bench/quality/work/work_trial.h"

namespace slipstream::quality {

// An object with a member for each kind that was tried, in the order of kWorkKinds; null if none
// was.
[[nodiscard]] Json work_of(const std::vector<WorkAnswer>& answers,
                           const std::vector<WorkAnswer>& base);

}  // namespace slipstream::quality
