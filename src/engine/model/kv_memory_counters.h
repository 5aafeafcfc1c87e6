// What caches whose codes lie in a file in part have cost so far, all loaded models together. The
// plugin counts it.
//
// Threads: thread-safe. Errors: none; nullopt if there was no such cache yet.
#pragma once

#include <optional>

#include "contract/kv_memory_counters.h"

namespace slipstream {

[[nodiscard]] std::optional<turbo::KvMemoryCounters> read_kv_memory_counters();

}  // namespace slipstream
