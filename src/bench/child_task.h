// ask_child(): lets another process do a task, because a process can have only one compressed KV
// scheme, and because a crash there is only an error here.
//
// The child reads its task as JSON from standard input, writes {"result": ...} or {"error": "..."}
// to standard output, and reports progress on standard error: "progress 0.25".
//
// Threads: as child.h.
// Errors:  as child.h; kUnsupported with the child's message, or with how it died.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipstream::bench {

using OnProgress = std::function<void(double done)>;  // from 0 to 1

[[nodiscard]] Result<nlohmann::json> ask_child(const std::vector<std::string>& command,
                                               const nlohmann::json& task,
                                               const OnProgress& on_progress);

// The child's side: calls `work` with the task and writes the result. Returns the exit status.
using ChildWork = std::function<Result<nlohmann::json>(const nlohmann::json& task,
                                                       const OnProgress& on_progress)>;
[[nodiscard]] int answer_parent(const ChildWork& work);

}  // namespace slipstream::bench
