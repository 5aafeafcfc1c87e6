// What `serve --rpc` does about hosts that are gone: the process that lost one tells its clients and
// ends, because ggml's client cannot go on; the one that the supervisor starts next waits for it.
//
// Threads: lose_host() from any thread, once. wait_for_hosts(): on start.
// Errors:  those of parse_rpc_hosts().
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"

namespace slipstream::serve {

[[noreturn]] void lose_host(const std::string& host);

// Returns once all hosts answer; false if it was told to stop before. may_stop: waits so long, and
// says whether to stop.
[[nodiscard]] Result<bool> wait_for_hosts(
    const std::string& hosts, const std::function<bool(std::chrono::milliseconds)>& may_stop);

}  // namespace slipstream::serve
