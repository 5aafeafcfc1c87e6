// What streaming the experts of all loaded models has cost so far, by layer. The plugin counts it.
//
// Threads: thread-safe. Errors: none; empty if nothing is streamed.
#pragma once

#include <vector>

#include "contract/expert_counters.h"

namespace slipstream {

[[nodiscard]] std::vector<turbo::ExpertCounters> read_expert_counters();

}  // namespace slipstream
