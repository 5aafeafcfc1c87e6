// Turns Ollama's messages and tools into those of OpenAI's chat API.
//
//   user, system      "content"
//   assistant         "content", "thinking" -> "reasoning_content", "tool_calls" without ids
//   tool              "content", "tool_name"
//
// Calls have no ids there. Each gets one by its place, and a result belongs to the first call of its
// tool that has none yet.
//
// Threads: immutable. Errors: 400 that names the message.
#pragma once

#include "server/api/api_error.h"
#include "server/json.h"

namespace slipstream {

[[nodiscard]] ApiResult<Json> read_ollama_messages(Json messages);
// Null if there are none.
[[nodiscard]] ApiResult<Json> read_ollama_tools(Json tools);

}  // namespace slipstream
