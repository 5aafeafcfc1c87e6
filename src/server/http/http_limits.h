// HttpLimits: what a connection may send, and how many connections there may be.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct HttpLimits {
  // HTTP (server/http). A larger header or body is refused with 431 or 413. A further connection is
  // refused with 503.
  std::size_t http_header_bytes_max = std::size_t{32} << 10;
  std::size_t http_body_bytes_max = std::size_t{32} << 20;
  std::size_t http_connections_max = 4096;
  // The total for all bodies that are being read or processed, without the first bytes of each. A
  // body without room waits, and is refused with 503 when it has waited too long.
  std::size_t http_bodies_bytes_max = std::size_t{256} << 20;
  std::size_t http_free_body_bytes = std::size_t{64} << 10;
  // A client that sends more than this before its current request is answered is cut off.
  std::size_t http_ahead_bytes_max = std::size_t{256} << 10;
};

inline constexpr HttpLimits kHttpLimits{};

}  // namespace slipstream
