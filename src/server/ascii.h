// Classes of bytes, independent of the locale: markup and JSON are ASCII.
//
// Threads: immutable.
#pragma once

#include <string_view>

namespace slipstream {

constexpr bool is_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}
constexpr bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
constexpr bool is_hex_digit(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}
// A letter, a digit or an underscore.
constexpr bool is_name_byte(char byte) {
  return is_digit(byte) || byte == '_' || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z');
}

constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace slipstream
