// Spread: a model whose layers lie on several machines. The first ones are on the hosts of --rpc, in
// their order; the last ones, and the output, which makes the widest results, are here.
//
// Threads: from one thread at a time.
// Errors:  those of rpc_host.h and rpc_devices.h.
#pragma once

#include <ggml-backend.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/model/kv_scheme.h"
#include "engine/rpc/rpc_devices.h"
#include "engine/rpc/rpc_watch.h"

namespace slipstream {

struct RemoteLayers {
  RpcHost host;
  int n_layers = 0;
  std::vector<CacheShape> caches = {};  // of these layers
};

struct Spread {
  std::vector<RemoteLayers> remote = {};  // none: the whole model is here
  int n_layers_here = 0;
  RpcWatch::OnLost on_lost = {};  // called when a host is gone; must not return

  [[nodiscard]] std::vector<RpcHost> hosts() const;
};

// How long a host may take to answer when a model is loaded.
inline constexpr std::chrono::seconds kGreetingTimeMax(10);

// What libllama is told.
struct SpreadDevices {
  std::vector<ggml_backend_dev_t> devices;  // the hosts', then `own`
  std::vector<float> split;                 // one for each that libllama could have
};
[[nodiscard]] Result<SpreadDevices> open_devices(const Spread& spread, ggml_backend_dev_t own,
                                                 std::int64_t n_cells, const KvScheme& scheme);

}  // namespace slipstream
