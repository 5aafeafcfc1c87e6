// ApiError: why a request failed, as the client is told. In OpenAI's shape it is:
//   {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}
//
// Threads: plain data.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>

#include "base/result.h"

namespace slipstream {

struct ApiError {
  int status = 400;
  std::string message;
  std::string param = {};    // "messages[2].content"; empty: none
  std::string code = {};     // "context_length_exceeded"; empty: none
  int retry_after_s = 1;     // 429 and 503: when the client should try again
  bool is_overload = false;  // the server is overloaded, whichever client asks
  // For context_length_exceeded: the tokens of the prompt and the size of the context.
  struct Lengths {
    std::size_t n_prompt;
    std::size_t n_context;
  };
  std::optional<Lengths> lengths = {};
};

template <typename T>
using ApiResult = std::expected<T, ApiError>;

inline std::unexpected<ApiError> refuse(std::string param, std::string message) {
  return std::unexpected(ApiError{.message = std::move(message), .param = std::move(param)});
}

// Converts an error of the engine.
[[nodiscard]] ApiError to_api_error(const Error& error);

// Shortens a text that quotes what a client sent, such as a name of several megabytes.
[[nodiscard]] std::string quotable(const std::string& text);

[[nodiscard]] std::string to_json(const ApiError& error);

}  // namespace slipstream
