// The value of an argument, or a default if it was not given. None counts as not given for texts
// and numbers, and as false for booleans.
//
// Threads: immutable. Errors: TemplateError for an argument of another type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

inline std::int64_t int_or(const Value* value, std::int64_t otherwise) {
  return value == nullptr || value->is_none() ? otherwise : to_int(*value);
}
inline std::string text_or(const Value* value, std::string_view otherwise) {
  return value == nullptr || value->is_none() ? std::string(otherwise)
                                              : expect_text(*value, "an argument");
}
inline MarkedText marked_or_empty(const Value* value) {
  if (value == nullptr || value->is_none()) return {};
  (void)expect_text(*value, "an argument");
  return *value->marked();
}
inline bool bool_or(const Value* value, bool otherwise) {
  return value == nullptr ? otherwise : value->truth();
}

}  // namespace slipstream::jinja
