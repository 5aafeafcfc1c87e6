// Decimal: the exact value of a JSON number. Bounds and multiples are compared digit by digit, so
// that 0.1 is exactly 0.1, and 9007199254740993 does not become its neighbour.
//
// Threads: plain data and pure functions. Errors: none.
#pragma once

#include <compare>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace slipstream {

struct Decimal {
  bool negative = false;    // never set for zero
  std::string whole = "0";  // without leading zeros
  std::string fraction;     // without trailing zeros

  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;
  [[nodiscard]] bool is_zero() const { return whole == "0" && fraction.empty(); }
  [[nodiscard]] Decimal negated() const;
  // The number as answers write it: no exponent, no trailing zeros, no minus sign before zero.
  [[nodiscard]] std::string text() const;
};

// Converts a JSON number. A binary float becomes the shortest decimal that reads back as
// the same float.
[[nodiscard]] Decimal decimal_of(const nlohmann::ordered_json& number);

}  // namespace slipstream
