// Anthropic's messages, whose content is a list of blocks, as OpenAI's chat API has them.
//
//   user      text, tool_result          -> one message of the role "tool" for each result, then "user"
//   assistant text, thinking, tool_use   -> "content", "reasoning_content", "tool_calls"
//
// Ids of calls only link results to them. A signature of thinking comes back as it was sent and
// says nothing to the model. redacted_thinking has nothing to read and is left out.
//
// Threads: immutable. Errors: 400 that names the block, for content that is no text.
#pragma once

#include "server/api/api_error.h"
#include "server/json.h"

namespace slipstream {

// Of "system": a text, or a list of text blocks.
[[nodiscard]] ApiResult<Json> to_system_message(Json system);

// Adds what the messages say to `chat`, a list of OpenAI's.
[[nodiscard]] ApiResult<void> add_messages(Json messages, Json& chat);

}  // namespace slipstream
