#include "cli/serve/lost_host.h"

#include <cstdlib>
#include <vector>

#include "base/log.h"
#include "engine/rpc/rpc_host.h"
#include "server/http/crash_notice.h"

namespace slipstream::serve {

void lose_host(const std::string& host) {
  log::error("rpc.lost", {{"host", host}});
  set_crash_notice(
      "A machine that computes a part of the model is gone. The server waits for it: ask again");
  std::abort();  // its handler tells the clients
}

Result<bool> wait_for_hosts(const std::string& hosts,
                            const std::function<bool(std::chrono::milliseconds)>& may_stop) {
  using namespace std::chrono_literals;
  constexpr auto kPause = 200ms;
  // A host that serves another program accepts the connection and answers later.
  constexpr auto kPatience = 60s;
  const Result<std::vector<RpcHost>> parsed = parse_rpc_hosts(hosts);
  if (!parsed) return std::unexpected(parsed.error());
  for (const RpcHost& host : *parsed) {
    std::string said;
    while (true) {
      const Result<void> greeted = greet(host, kPatience, [&] { return may_stop(0ms); });
      if (greeted) break;
      if (greeted.error().code == Code::kCancelled) return false;
      if (greeted.error().message != said) {
        said = greeted.error().message;
        log::warn("rpc.waiting", {{"host", host.name}, {"why", said}});
      }
      if (may_stop(kPause)) return false;
    }
    if (!said.empty()) log::info("rpc.back", {{"host", host.name}});
  }
  return true;
}

}  // namespace slipstream::serve
