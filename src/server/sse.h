// Server-sent events.
//
// Threads: immutable.
#pragma once

#include <string>
#include <string_view>

#include "server/http/http_exchange.h"

namespace slipstream {

inline HttpReply event_stream_head() {
  // X-Accel-Buffering keeps a proxy from buffering the answer, which would delay the events.
  return {.content_type = "text/event-stream",
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

inline std::string event_of(const std::string& data) { return "data: " + data + "\n\n"; }
// An event with a name, for clients that distinguish events by name.
inline std::string event_of(std::string_view name, const std::string& data) {
  return "event: " + std::string(name) + "\n" + event_of(data);
}

inline constexpr std::string_view kEventsDone = "data: [DONE]\n\n";

}  // namespace slipstream
