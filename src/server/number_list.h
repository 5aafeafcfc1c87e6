// number_list(): numbers as a JSON list, each with as few digits as name its float. A document of
// numbers would take four times their memory, and its text has digits of doubles.
//
// Threads: thread-safe. REQUIRES: they are finite.
#pragma once

#include <array>
#include <charconv>
#include <span>
#include <string>

namespace slipstream {

inline std::string number_list(std::span<const float> numbers) {
  constexpr std::size_t kDigitsMax = 32;
  std::string text = "[";
  std::array<char, kDigitsMax> digits{};
  for (const float number : numbers) {
    if (text.size() > 1) text += ',';
    text.append(digits.data(),
                std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
  }
  text += ']';
  return text;
}

}  // namespace slipstream
