// UTF-8, one character at a time and strict: no overlong forms, no surrogates, at most U+10FFFF.
//
// Invalid bytes are cut as by the WHATWG decoder and Unicode's "maximal subpart" practice: each
// longest start of a valid character that goes wrong is one error, and so is each byte that cannot
// start one. All readers that replace errors by U+FFFD then show the same text.
//
// Threads: pure functions. Errors: none, see Utf8Char::kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace slipstream {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Char {
  enum class Kind {
    kValid,
    kInvalid,     // its n_bytes are one error
    kIncomplete,  // the text ends inside a character that is valid so far
  };
  Kind kind;
  std::size_t n_bytes;
  char32_t code_point;  // of a valid character
};

// The character at the start of `bytes`, which must not be empty.
[[nodiscard]] Utf8Char decode_utf8(std::string_view bytes);

[[nodiscard]] bool is_utf8(std::string_view text);

// Appends the code point, which must be a Unicode scalar value.
void append_utf8(std::string& text, char32_t code_point);

// Appends `bytes` with a U+FFFD for each error, up to an incomplete character at the end. Returns
// how many bytes it read.
std::size_t append_repaired_utf8(std::string& text, std::string_view bytes);

}  // namespace slipstream
