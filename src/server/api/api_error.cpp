#include "server/api/api_error.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace slipstream {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
  }
}

int status_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kUnsupported: return 400;
    case Code::kNotFound: return 404;
    case Code::kPermission: return 403;
    case Code::kOverloaded: return 429;
    case Code::kOutOfMemory:
    case Code::kCancelled: return 503;
    case Code::kCorrupt:
    case Code::kIo: return 500;
  }
  return 500;
}

nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(quotable(text));
}

}  // namespace

std::string quotable(const std::string& text) {
  constexpr std::size_t kBytesMax = 4096;
  return text.size() <= kBytesMax ? text : text.substr(0, kBytesMax) + "...";
}

ApiError to_api_error(const Error& error) {
  return {.status = status_of(error.code),
          .message = error.message,
          .is_overload = error.code == Code::kOverloaded};
}

std::string to_json(const ApiError& error) {
  const nlohmann::json json = {{"error",
                                {{"message", quotable(error.message)},
                                 {"type", type_of(error.status)},
                                 {"param", text_or_null(error.param)},
                                 {"code", text_or_null(error.code)}}}};
  // Messages quote what the client sent. dump() replaces bytes that are not UTF-8 and never throws.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace slipstream
