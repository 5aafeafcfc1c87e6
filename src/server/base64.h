// Base64 as in RFC 4648. Boost's version is internal to Beast, and these lines do not justify
// another library.
//
// Threads: thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

inline constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](std::size_t i) {
      return at + i < bytes.size() ? std::to_integer<std::uint32_t>(bytes[at + i]) : 0;
    };
    const std::uint32_t group = byte(0) << 16U | byte(1) << 8U | byte(2);
    for (const unsigned shift : {18U, 12U, 6U, 0U}) text += kBase64Digits[group >> shift & 63U];
  }
  for (std::size_t n_missing = (3 - bytes.size() % 3) % 3; n_missing > 0; --n_missing) {
    text[text.size() - n_missing] = '=';
  }
  return text;
}

// nullopt: it is not base64. The padding may be missing, and nothing may follow it.
inline std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  constexpr std::uint8_t kNone = 64;
  constexpr auto kValues = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(std::uint8_t{kNone});
    for (std::uint8_t i = 0; i < kNone; ++i) {
      values[static_cast<unsigned char>(kBase64Digits[i])] = i;
    }
    return values;
  }();
  const std::size_t n_padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  if (n_padding > 0 && text.size() % 4 != 0) return std::nullopt;
  text.remove_suffix(n_padding);
  if (text.size() % 4 == 1) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  unsigned n_bits = 0;
  for (const char digit : text) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(digit)];
    if (value == kNone) return std::nullopt;
    bits = bits << 6U | value;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> n_bits & 0xFFU));
  }
  return bytes;
}

}  // namespace slipstream
