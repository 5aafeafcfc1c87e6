// Facts that lead to each other, planted in a text: a key is in someone's house, who lives in a
// town, which lies in a land. Asked is the town (2 hops) or the land (3 hops). Two other keys with
// their own owners, towns and lands are in the same text.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "bench/quality/work/work_task.h"

namespace slipstream::quality {

[[nodiscard]] std::vector<WorkTask> make_facts(int n_tasks, const Hay& hay);

// The answer must contain the right name and none of the others that could have been asked for.
[[nodiscard]] Mark judge_name(const std::string& answer, const std::string& right,
                              const std::vector<std::string>& others);

}  // namespace slipstream::quality
