#include "cli/chat/terminal_text.h"

#include <algorithm>
#include <cstdint>

#include "base/format.h"

namespace slipstream::chat {
namespace {

// The number of bytes of the code point that begins here; 0 if it is invalid.
std::size_t code_point_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  // Rejects overlong encodings, surrogates, and values beyond Unicode.
  const bool is_overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool is_none = (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
  return is_overlong || is_none ? 0 : n;
}

bool is_control(std::string_view code_point) {
  const auto first = static_cast<unsigned char>(code_point[0]);
  if (code_point.size() == 1)
    return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
  return first == 0xC2 && static_cast<unsigned char>(code_point[1]) < 0xA0;
}

}  // namespace

std::string terminal_text(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t n = std::max<std::size_t>(code_point_bytes(text), 1);
    const std::string_view code_point = text.substr(0, n);
    if (code_point_bytes(text) == 0 || is_control(code_point)) {
      // The second byte of a Unicode control character is its number.
      safe += format_text("\\x{:02x}", static_cast<unsigned char>(code_point.back()));
    } else {
      safe += code_point;
    }
    text.remove_prefix(n);
  }
  return safe;
}

}  // namespace slipstream::chat
