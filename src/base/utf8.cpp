#include "base/utf8.h"

#include "base/check.h"

namespace slipstream {
namespace {

struct Lead {
  std::size_t n_bytes;        // of the whole character; 0: not the start of a character
  unsigned char low = 0x80;   // the smallest second byte
  unsigned char high = 0xBF;  // the largest second byte
};

// Table 3-7 of the Unicode standard, "well-formed UTF-8 byte sequences".
Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {.n_bytes = 1};
  if (byte < 0xC2) return {.n_bytes = 0};
  if (byte < 0xE0) return {.n_bytes = 2};
  if (byte == 0xE0) return {.n_bytes = 3, .low = 0xA0};
  if (byte == 0xED) return {.n_bytes = 3, .high = 0x9F};
  if (byte < 0xF0) return {.n_bytes = 3};
  if (byte == 0xF0) return {.n_bytes = 4, .low = 0x90};
  if (byte < 0xF4) return {.n_bytes = 4};
  if (byte == 0xF4) return {.n_bytes = 4, .high = 0x8F};
  return {.n_bytes = 0};
}

}  // namespace

Utf8Char decode_utf8(std::string_view bytes) {
  SLIP_CHECK(!bytes.empty(), "no byte to decode");
  const auto first = static_cast<unsigned char>(bytes[0]);
  const Lead lead = lead_of(first);
  if (lead.n_bytes == 0) return {Utf8Char::Kind::kInvalid, 1, 0};
  if (lead.n_bytes == 1) return {Utf8Char::Kind::kValid, 1, first};
  // A lead byte of an n-byte character has 7 - n bits of the code point.
  char32_t code_point = first & ((1U << (7 - lead.n_bytes)) - 1);
  for (std::size_t i = 1; i < lead.n_bytes; ++i) {
    if (i == bytes.size()) return {Utf8Char::Kind::kIncomplete, i, 0};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return {Utf8Char::Kind::kInvalid, i, 0};
    code_point = (code_point << 6) | (byte & 0x3FU);
  }
  return {Utf8Char::Kind::kValid, lead.n_bytes, code_point};
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto append = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (code_point < 0x80) {
    append(code_point);
    return;
  }
  if (code_point < 0x800) {
    append(0xC0 | (code_point >> 6));
  } else if (code_point < 0x10000) {
    append(0xE0 | (code_point >> 12));
    append(0x80 | ((code_point >> 6) & 0x3F));
  } else {
    append(0xF0 | (code_point >> 18));
    append(0x80 | ((code_point >> 12) & 0x3F));
    append(0x80 | ((code_point >> 6) & 0x3F));
  }
  append(0x80 | (code_point & 0x3F));
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char character = decode_utf8(text);
    if (character.kind != Utf8Char::Kind::kValid) return false;
    text.remove_prefix(character.n_bytes);
  }
  return true;
}

std::size_t append_repaired_utf8(std::string& text, std::string_view bytes) {
  std::size_t n_taken = 0;
  while (n_taken < bytes.size()) {
    const std::string_view rest = bytes.substr(n_taken);
    const Utf8Char character = decode_utf8(rest);
    if (character.kind == Utf8Char::Kind::kIncomplete) break;
    const bool valid = character.kind == Utf8Char::Kind::kValid;
    text += valid ? rest.substr(0, character.n_bytes) : kReplacementCharacter;
    n_taken += character.n_bytes;
  }
  return n_taken;
}

}  // namespace slipstream
