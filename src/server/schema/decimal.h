// Decimal: a number as JSON writes it, exact. Bounds and multiples are compared digit by digit, so
// that 0.1 is 0.1, and 9007199254740993 is not its neighbour.
//
// Threads: plain data and pure functions. Errors: none.
#pragma once

#include <compare>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace slipstream {

struct Decimal {
  bool negative = false;    // never of zero
  std::string whole = "0";  // without leading zeros
  std::string fraction;     // without trailing zeros

  std::strong_ordering operator<=>(const Decimal& other) const;
  bool operator==(const Decimal& other) const = default;
  [[nodiscard]] bool is_zero() const { return whole == "0" && fraction.empty(); }
  [[nodiscard]] Decimal negated() const;
  // As we write it: no exponent, no trailing zeros, no minus before zero.
  [[nodiscard]] std::string text() const;
};

// Of a JSON number. A binary float is the shortest decimal that reads back as it.
[[nodiscard]] Decimal decimal_of(const nlohmann::ordered_json& number);

}  // namespace slipstream
