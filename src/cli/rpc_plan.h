// Plans a model for this machine and the hosts of --rpc together: what all of them have decides the
// KV scheme and the context (kv_choice.h), and what each of them has decides who gets which layers.
//
// Threads: from one thread at a time.
// Errors:  those of kv_choice.h, rpc_host.h and rpc_devices.h; kOutOfMemory with the numbers of all
//          machines; kUnsupported for models whose layers the forecast does not know.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/kv_choice.h"

namespace slipstream {

// hosts: the value of --rpc; empty: this machine alone, as plan_kv() plans it.
[[nodiscard]] Result<KvPlan> plan_over_hosts(const std::string& hosts,
                                             const std::filesystem::path& model, const KvWish& kv,
                                             const ContextWish& context, const MemoryWish& memory,
                                             const WeightWish& weights);

}  // namespace slipstream
