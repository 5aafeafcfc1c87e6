// McpLimits: what clients of MCP may send, and how much they get at once.
//
// Threads: immutable.
#pragma once

#include <chrono>
#include <cstddef>

namespace slipstream {

struct McpLimits {
  // One message. Whatever a client has to say is short: its largest part is a query.
  std::size_t message_bytes_max = std::size_t{256} << 10;
  std::size_t nesting_max = 32;
  std::size_t values_max = 10'000;
  // Of one object: nlohmann's ordered objects compare each new name with all others.
  std::size_t members_max = 256;
  std::size_t batch_max = 16;  // messages, in revision 2025-03-26
  std::size_t id_bytes_max = 256;
  std::size_t method_bytes_max = 128;
  // Of what a client sent, in an error.
  std::size_t quoted_bytes_max = 80;

  // One answer.
  std::size_t place_bytes_max = 4000;  // of the text of one place
  std::size_t lines_max = 1000;
  std::size_t lines_bytes_max = std::size_t{64} << 10;
  std::size_t resource_bytes_max = std::size_t{2} << 20;
  int resources_of_page_max = 200;

  // How long an answer waits for the index to have what is in the files now.
  std::chrono::milliseconds sync_time_max{400};
  // wait_until_fresh. Clients give up on a call after 60 seconds.
  int wait_seconds_max = 50;
  int waiting_max = 2;  // calls that wait at the same time
};

inline constexpr McpLimits kMcpLimits{};

}  // namespace slipstream
