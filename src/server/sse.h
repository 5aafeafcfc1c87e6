// Server-sent events.
//
// Threads: immutable.
#pragma once

#include <string>
#include <string_view>

#include "server/http/http_exchange.h"

namespace slipstream {

inline HttpReply event_stream_head() {
  // A proxy that collects the answer would defeat its purpose.
  return {.content_type = "text/event-stream",
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

inline std::string event_of(const std::string& data) { return "data: " + data + "\n\n"; }
// With a name, for clients that tell events apart by it.
inline std::string event_of(std::string_view name, const std::string& data) {
  return "event: " + std::string(name) + "\n" + event_of(data);
}

inline constexpr std::string_view kEventsDone = "data: [DONE]\n\n";

}  // namespace slipstream
