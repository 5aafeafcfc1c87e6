// What Anthropic's clients are told when they cannot have what they asked for:
//   {"type": "error", "error": {"type": ..., "message": ...}}
//
// Overload is 529 there, and a prompt that is too long has words that its clients look for.
//
// Threads: immutable. Errors: none.
#pragma once

#include <string>

#include "server/api/api_error.h"
#include "server/http/http_exchange.h"

namespace slipstream {

[[nodiscard]] HttpReply messages_refusal(const ApiError& error);
// The body alone, also an event of a stream that has begun.
[[nodiscard]] std::string messages_error(const ApiError& error);

}  // namespace slipstream
