// ask_child(): runs a program, gives it a line of JSON and takes its answer.
//
// The child reads its task from standard input and writes lines of JSON to standard output:
// {"progress": 0.4} as often as it likes, at last {"result": ...} or {"error": "..."}. Its standard
// error goes to a log. posix_spawn and two pipes, because Boost.Process would bring a library more
// for these lines.
//
// Threads: thread-safe. Errors: kUnsupported with what the child said, or how it died and the end
// of
//          its log.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipstream::bench {

struct ChildProgram {
  std::vector<std::string> command;  // the first is a path
  std::filesystem::path log;         // appended to
};

[[nodiscard]] Result<nlohmann::json> ask_child(const ChildProgram& program,
                                               const nlohmann::json& task,
                                               const std::function<void(double)>& on_progress);

// The child's side: reads the task, calls `work`, writes what it returns. The exit status.
using ChildWork = std::function<Result<nlohmann::json>(
    const nlohmann::json& task, const std::function<void(double)>& on_progress)>;
[[nodiscard]] int answer_parent(const ChildWork& work);

}  // namespace slipstream::bench
