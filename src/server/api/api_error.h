// ApiError: what a client is told when it cannot have what it asked for, in OpenAI's shape:
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
  int retry_after_s = 1;     // 429 and 503: when it is worth another try
  bool is_overload = false;  // the server has too much to do, whoever asks
  // context_length_exceeded: of the prompt and of the context.
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

// The same from an error of the engine.
[[nodiscard]] ApiError to_api_error(const Error& error);

// Messages and fields quote what a client sent, and that may be megabytes of a name.
[[nodiscard]] std::string quotable(const std::string& text);

[[nodiscard]] std::string to_json(const ApiError& error);

}  // namespace slipstream
