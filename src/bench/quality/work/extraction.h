// Extraction of fields into JSON: a note has one to three orders, and what one person ordered is to
// be written as an object of a schema. The schema stands in the message; nothing constrains the
// answer.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/quality/work/work_task.h"

namespace slipstream::quality {

[[nodiscard]] std::vector<WorkTask> make_extraction(int n_tasks, const Hay& hay);

// The first JSON object in the answer counts: valid if the schema allows it, right if it is equal
// to `right`, in any order.
[[nodiscard]] Mark judge_object(const std::string& answer, const nlohmann::ordered_json& schema,
                                const nlohmann::ordered_json& right);

}  // namespace slipstream::quality
