// A part of a message in the place of an image: words that its template renders, and that are no text.
//
// Threads: immutable. Errors: none.
#pragma once

#include <string>
#include <utility>

#include "server/json.h"

namespace slipstream {

inline constexpr std::string_view kImageMark = "image_mark";

[[nodiscard]] inline Json image_mark(std::string text) {
  return {{"type", kImageMark}, {"text", std::move(text)}};
}

[[nodiscard]] inline bool is_image_mark(const Json& part) {
  const Json* type = member(part, "type");
  return type != nullptr && *type == kImageMark;
}

}  // namespace slipstream
