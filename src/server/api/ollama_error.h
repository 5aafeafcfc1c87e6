// Writes errors as Ollama's clients expect them: {"error": "what is wrong"}.
//
// Threads: immutable. Errors: none.
#pragma once

#include <string>

#include "server/api/api_error.h"
#include "server/http/http_exchange.h"

namespace slipstream {

[[nodiscard]] HttpReply ollama_refusal(const ApiError& error);
// Only the body. It is also a line of a stream that has begun.
[[nodiscard]] std::string ollama_error(const ApiError& error);

}  // namespace slipstream
