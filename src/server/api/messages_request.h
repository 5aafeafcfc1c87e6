// MessagesRequest: the body of POST /v1/messages, Anthropic's API.
//
// It becomes the ChatRequest that OpenAI's API would have made of the same conversation, so that
// templates, tools and prefixes see no difference. Fields that only Anthropic's own models have
// (betas, context_management, metadata, ...) are ignored: its clients send them to every server.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include "server/api/chat_request.h"

namespace slipstream {

struct MessagesRequest {
  ChatRequest chat;
  bool wants_cache = false;  // "cache_control" somewhere: usage tells what was put in the cache
};

// Takes what may be long out of the body.
[[nodiscard]] ApiResult<MessagesRequest> read_messages_request(Json& body);

// The same for POST /v1/messages/count_tokens, where "max_tokens" has no use.
[[nodiscard]] ApiResult<MessagesRequest> read_count_tokens_request(Json& body);

}  // namespace slipstream
