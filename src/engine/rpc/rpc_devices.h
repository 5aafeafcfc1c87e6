// The devices of other machines, as ggml's registry has them once it was told of the hosts.
//
// A host says how much memory it has left, and how many bytes it would take for a cache tensor. No
// message of ggml's RPC says more: neither its device's name nor the scheme of its KV cache. So
// schemes are compared by what the same tensor takes here and there.
//
// REQUIRES: greet() has succeeded: ggml's client ends the process if a host is gone.
//
// Threads: from one thread at a time.
// Errors:  kUnsupported without ggml's RPC backend, or if it refuses the host; kInvalidArgument for a
//          host that stores the KV cache in another scheme.
#pragma once

#include <ggml-backend.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/rpc/rpc_host.h"

namespace slipstream {

// The host's first device. It is ggml's, for as long as the process runs.
[[nodiscard]] Result<ggml_backend_dev_t> open_rpc_device(const RpcHost& host);

// What the host has left.
[[nodiscard]] std::uint64_t free_bytes(ggml_backend_dev_t device);

// The cache of one layer: numbers per cell.
struct CacheShape {
  int layer = 0;
  std::int64_t key_channels = 0;
  std::int64_t value_channels = 0;
};

// Whether the host takes as much for these caches as `own` does, a device of this process.
// scheme: its name, for the message.
[[nodiscard]] Result<void> check_same_scheme(const RpcHost& host, ggml_backend_dev_t device,
                                             ggml_backend_dev_t own,
                                             std::span<const CacheShape> caches,
                                             std::int64_t n_cells, const std::string& scheme);

}  // namespace slipstream
