// Turns Anthropic's messages, whose content is a list of blocks, into those of OpenAI's chat API.
//
//   user      text, image, tool_result -> a message of the role "tool" for each result, then "user"
//   assistant text, thinking, tool_use -> "content", "reasoning_content", "tool_calls"
//
// Ids of calls only link results to calls. Clients send a signature of thinking back unchanged; it
// is dropped, because it means nothing to the model. redacted_thinking cannot be read, so it is
// dropped, too.
//
// Threads: immutable. Errors: 400 that names the block, for content that is neither text nor an image.
#pragma once

#include "server/api/api_error.h"
#include "server/json.h"

namespace slipstream {

// system: the field "system", a text or a list of text blocks. Returns null if it has no text.
[[nodiscard]] ApiResult<Json> to_system_message(Json system);

// Appends the messages to `chat`, a list of OpenAI's messages.
[[nodiscard]] ApiResult<void> add_messages(Json messages, Json& chat);

}  // namespace slipstream
