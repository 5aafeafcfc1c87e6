// MessagesRequest: the body of POST /v1/messages, Anthropic's API.
//
// It is read into the ChatRequest that OpenAI's API would make of the same conversation, so that
// prompts and tools are the same and computed prefixes are shared. Fields that only Anthropic's own
// models have (betas, context_management, metadata, ...) are ignored, because Anthropic's clients
// send them to every server.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include "server/api/chat_request.h"

namespace slipstream {

struct MessagesRequest {
  ChatRequest chat;
  bool wants_cache = false;  // has "cache_control": usage tells how many tokens were cached
};

// Moves long values out of the body.
[[nodiscard]] ApiResult<MessagesRequest> read_messages_request(Json& body);

// Does the same for POST /v1/messages/count_tokens, where "max_tokens" is not required.
[[nodiscard]] ApiResult<MessagesRequest> read_count_tokens_request(Json& body);

}  // namespace slipstream
