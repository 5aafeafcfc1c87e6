#include "server/api/ollama_error.h"

#include "server/json.h"

namespace slipstream {

HttpReply ollama_refusal(const ApiError& error) {
  return {.status = error.status, .body = ollama_error(error)};
}

std::string ollama_error(const ApiError& error) {
  return dump({{"error", quotable(error.message)}});
}

}  // namespace slipstream
