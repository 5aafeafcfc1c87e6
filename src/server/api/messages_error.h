// Writes errors as Anthropic's clients expect them:
//   {"type": "error", "error": {"type": ..., "message": ...}}
//
// The status of an overload is 529. The message about a prompt that is too long has the words that
// clients look for.
//
// Threads: immutable. Errors: none.
#pragma once

#include <string>

#include "server/api/api_error.h"
#include "server/http/http_exchange.h"

namespace slipstream {

[[nodiscard]] HttpReply messages_refusal(const ApiError& error);
// Only the body. It is also an event of a stream that has begun.
[[nodiscard]] std::string messages_error(const ApiError& error);

}  // namespace slipstream
