// What streaming the experts of all loaded models took so far, as the plugin counts it, by layer.
//
// Threads: thread-safe. Errors: none; nothing where nothing is streamed.
#pragma once

#include <vector>

#include "contract/expert_counters.h"

namespace slipstream {

[[nodiscard]] std::vector<turbo::ExpertCounters> read_expert_counters();

}  // namespace slipstream
