#include "server/api/messages_error.h"

#include <string_view>

#include "base/format.h"
#include "server/json.h"

namespace slipstream {
namespace {

constexpr int kOverloaded = 529;

int messages_status(const ApiError& error) {
  return error.is_overload || error.status == 503 ? kOverloaded : error.status;
}

std::string_view messages_error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 413: return "request_too_large";
    case 429: return "rate_limit_error";
    case kOverloaded: return "overloaded_error";
    default: return status < 500 ? "invalid_request_error" : "api_error";
  }
}

// Claude Code reads both numbers and shortens its conversation.
std::string message_of(const ApiError& error) {
  if (!error.lengths) return quotable(error.message);
  return format_text("prompt is too long: {} tokens > {} maximum", error.lengths->n_prompt,
                     error.lengths->n_context);
}

}  // namespace

HttpReply messages_refusal(const ApiError& error) {
  return {.status = messages_status(error), .body = messages_error(error)};
}

std::string messages_error(const ApiError& error) {
  return dump(
      {{"type", "error"},
       {"error",
        {{"type", messages_error_type(messages_status(error))}, {"message", message_of(error)}}}});
}

}  // namespace slipstream
