// Code completion: the beginning of a Python function, with its description, is completed by the
// model, and what it wrote is run against assertions, in a sandbox.
//
// Threads: pure functions, but for the sandbox. Errors: a program that cannot be run is not right.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/quality/work/sandbox.h"
#include "bench/quality/work/work_task.h"

namespace slipstream::quality {

// Each function twice, once within text, at most. The tasks share the sandbox.
[[nodiscard]] std::vector<WorkTask> make_code(int n_tasks, const Hay& hay,
                                              const std::shared_ptr<const Sandbox>& sandbox);

// The function `name` that the answer contains: in a block of Markdown, among prose, or as the lines
// that follow the beginning.
[[nodiscard]] std::string function_in(const std::string& answer, std::string_view name,
                                      std::string_view beginning);

// Valid if the function can be defined, right if all assertions hold.
[[nodiscard]] Mark judge_function(const Sandbox& sandbox, const std::string& function,
                                  std::string_view assertions);

}  // namespace slipstream::quality
