#include "engine/rpc/spread.h"

#include <llama.h>

#include "base/check.h"

namespace slipstream {

std::vector<RpcHost> Spread::hosts() const {
  std::vector<RpcHost> hosts;
  for (const RemoteLayers& layers : remote) hosts.push_back(layers.host);
  return hosts;
}

Result<SpreadDevices> open_devices(const Spread& spread, ggml_backend_dev_t own,
                                   std::int64_t n_cells, const KvScheme& scheme) {
  SpreadDevices opened;
  for (const RemoteLayers& layers : spread.remote) {
    if (Result<void> greeted = greet(layers.host, kGreetingTimeMax); !greeted) {
      return std::unexpected(std::move(greeted.error()));
    }
    const Result<ggml_backend_dev_t> device = open_rpc_device(layers.host);
    if (!device) return std::unexpected(device.error());
    // Devices leave caches of stock's own types as they are, whatever their scheme.
    if (scheme.key_type() == GGML_TYPE_F16) {
      Result<void> same =
          check_same_scheme(layers.host, *device, own, layers.caches, n_cells, scheme.name());
      if (!same) return std::unexpected(std::move(same.error()));
    }
    opened.devices.push_back(*device);
    opened.split.push_back(static_cast<float>(layers.n_layers));
  }
  opened.devices.push_back(own);
  // libllama counts the output as one layer more.
  opened.split.push_back(static_cast<float>(spread.n_layers_here + 1));
  SLIP_CHECK(opened.split.size() <= llama_max_devices(), "more hosts than libllama has devices");
  opened.split.resize(llama_max_devices());
  return opened;
}

}  // namespace slipstream
