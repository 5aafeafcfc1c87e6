// Arithmetic chains: "a = 3. b = a + 4. c = b * 2. What is the value of c?", of 2 to 6 steps, each
// from the one before. All values are from 0 to 99.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "bench/quality/work/work_task.h"

namespace slipstream::quality {

[[nodiscard]] std::vector<WorkTask> make_arithmetic(int n_tasks, const Hay& hay);

// The last number of the answer counts: many models repeat the chain before they say the result.
[[nodiscard]] Mark judge_number(const std::string& answer, int right);

}  // namespace slipstream::quality
