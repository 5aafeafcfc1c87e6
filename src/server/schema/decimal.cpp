#include "server/schema/decimal.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

namespace slipstream {
namespace {

std::strong_ordering compare_magnitudes(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() <=> b.whole.size();
  if (const auto order = a.whole <=> b.whole; std::is_neq(order)) return order;
  // There are no trailing zeros, so a fraction that is a prefix of the other is the smaller one.
  return a.fraction <=> b.fraction;
}

Decimal parsed(std::string_view text) {
  Decimal decimal;
  if (text.starts_with('-')) {
    decimal.negative = true;
    text.remove_prefix(1);
  }
  int exponent = 0;
  if (const std::size_t e = text.find_first_of("eE"); e != text.npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    text = text.substr(0, e);
  }
  const std::size_t point = text.find('.');
  decimal.whole = text.substr(0, point);
  if (point != text.npos) decimal.fraction = text.substr(point + 1);
  // Moves the point by at most 324 places, the range of a double's exponent.
  std::string& whole = decimal.whole;
  std::string& fraction = decimal.fraction;
  const auto n_places = static_cast<std::size_t>(std::abs(exponent));
  if (exponent > 0) {
    if (fraction.size() < n_places) fraction.append(n_places - fraction.size(), '0');
    whole += fraction.substr(0, n_places);
    fraction.erase(0, n_places);
  } else if (exponent < 0) {
    if (whole.size() < n_places) whole.insert(0, n_places - whole.size(), '0');
    fraction.insert(0, whole.substr(whole.size() - n_places));
    whole.resize(whole.size() - n_places);
  }
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  if (whole.empty()) whole = "0";
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (decimal.is_zero()) decimal.negative = false;
  return decimal;
}

}  // namespace

std::strong_ordering Decimal::operator<=>(const Decimal& other) const {
  if (negative != other.negative) {
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  return negative ? compare_magnitudes(other, *this) : compare_magnitudes(*this, other);
}

Decimal Decimal::negated() const {
  Decimal other = *this;
  other.negative = !negative && !is_zero();
  return other;
}

std::string Decimal::text() const {
  return (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction);
}

Decimal decimal_of(const nlohmann::ordered_json& number) { return parsed(number.dump()); }

}  // namespace slipstream
