// RpcHost: a machine that computes layers of a model: where its ggml-rpc-server listens.
//
// ggml's client ends the process when a host does not answer as it should, and waits forever when
// it does not answer at all. So a host is greeted here first, with the one message of the protocol
// that all its versions share, and a limit on time.
//
// Threads: thread-safe.
// Errors:  parse_rpc_hosts(): kInvalidArgument. greet(): kNotFound for a name without an address,
//          kIo if nothing listens there, kOverloaded if it serves another program, kUnsupported if
//          what listens there does not understand.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream {

struct RpcHost {
  std::string name;  // HOST:PORT, as ggml takes it
  std::string host;
  std::uint16_t port = 0;
};

// libllama has 16 devices, and one of them is here.
inline constexpr std::size_t kRpcHostsMax = 15;

// "10.0.0.2:50052,10.0.0.3:50052"
[[nodiscard]] Result<std::vector<RpcHost>> parse_rpc_hosts(std::string_view list);

// Addresses of IPv4: ggml's client knows no other, and takes the first.
[[nodiscard]] Result<std::vector<sockaddr_storage>> addresses_of(const RpcHost& host);

// Returns once the host has answered. A host that serves another program is waited for as long as
// the time lasts. is_given_up is asked now and then, if it is set: true ends the wait.
[[nodiscard]] Result<void> greet(const RpcHost& host, std::chrono::milliseconds time_max,
                                 const std::function<bool()>& is_given_up = {});

}  // namespace slipstream
