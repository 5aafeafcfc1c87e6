// Server-sent events, as OpenAI's clients read them.
//
// Threads: immutable.
#pragma once

#include <string>
#include <string_view>

#include "server/api/json_fields.h"
#include "server/http/http_exchange.h"

namespace slipstream {

inline HttpReply event_stream_head() {
  // A proxy that collects the answer would defeat its purpose.
  return {.content_type = "text/event-stream",
          .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}}};
}

// JSON on one line: what is not UTF-8 has no place in it, and the engine gives out none.
inline std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

inline std::string event_of(const std::string& data) { return "data: " + data + "\n\n"; }

inline constexpr std::string_view kEventsDone = "data: [DONE]\n\n";

}  // namespace slipstream
