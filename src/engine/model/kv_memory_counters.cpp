#include "engine/model/kv_memory_counters.h"

#include "engine/model/turbo_plugin.h"

namespace slipstream {

std::optional<turbo::KvMemoryCounters> read_kv_memory_counters() {
  auto* read = find_turbo_function<turbo::ReadKvMemoryCounters>();
  turbo::KvMemoryCounters counters;
  if (read == nullptr || !read(&counters)) return std::nullopt;
  return counters;
}

}  // namespace slipstream
