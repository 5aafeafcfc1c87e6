#include "server/schema/number_range.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "base/format.h"
#include "server/schema/schema_limits.h"

namespace slipstream {
namespace {

using Bound = NumberRange::Bound;
constexpr std::size_t kDigitsMax = NumberRange::kDigitsMax;

// All multiples of the range combined: value * 10^n_places is a multiple of `factor`.
struct Multiple {
  std::size_t n_places = kDigitsMax;
  std::uint64_t factor = 1;
};

std::unexpected<Error> multiple_unsupported() {
  return fail(Code::kUnsupported, format_text("a multiple with more digits than {} in all",
                                              kSchemaLimits.multiple_of_max));
}

// The decimal's digits as an integer, scaled to n_places decimal places.
std::optional<std::uint64_t> scaled(const Decimal& decimal, std::size_t n_places) {
  std::string digits = decimal.whole + decimal.fraction;
  digits.append(n_places - decimal.fraction.size(), '0');
  std::uint64_t value = 0;
  for (const char digit : digits) {
    value = value * 10 + static_cast<std::uint64_t>(digit - '0');
    if (value > kSchemaLimits.multiple_of_max) return std::nullopt;
  }
  return value;
}

Result<Multiple> common_multiple(const NumberRange& range) {
  Multiple common;
  if (range.is_integer) common.n_places = 0;
  if (range.multiples.empty()) return common;
  std::size_t n_places = 0;
  for (const Decimal& multiple : range.multiples) {
    n_places = std::max(n_places, multiple.fraction.size());
  }
  std::vector<Decimal> multiples = range.multiples;
  if (range.is_integer) multiples.push_back({.negative = false, .whole = "1", .fraction = ""});
  common.n_places = n_places;
  for (const Decimal& multiple : multiples) {
    const std::optional<std::uint64_t> factor = scaled(multiple, n_places);
    if (!factor) return multiple_unsupported();
    common.factor = std::lcm(common.factor, *factor);
    if (common.factor > kSchemaLimits.multiple_of_max) return multiple_unsupported();
  }
  return common;
}

// How the digits read so far compare with a bound. While they are equal, the next digit decides.
enum class Order : std::uint8_t { kLess, kEqual, kGreater };

// Builds the automaton of the texts of non-negative numbers, digit by digit.
class DigitReader {
 public:
  DigitReader(Bound low, std::optional<Bound> high, bool is_integer, Multiple multiple)
      : low_(std::move(low)),
        high_(std::move(high)),
        is_integer_(is_integer),
        multiple_(multiple) {}

  Result<Automaton> run(WorkBudget& budget) {
    (void)state_of({});
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_.size() > kSchemaLimits.automaton_states_max) return too_many_states();
      if (const Result<void> spent = budget.spend(16); !spent) {
        return std::unexpected(spent.error());
      }
      if (!is_integer_ && can_take_point(places_[i])) {
        Place next = places_[i];
        // Only as many digits as were read have been compared: a number with fewer whole
        // digits is less.
        next.low = whole_order(next.low, next.n_digits, low_.value);
        if (high_) next.high = whole_order(next.high, next.n_digits, high_->value);
        next.in_fraction = true;
        next.n_digits = 0;
        add_edge(i, '.', next);
      }
      for (char digit = '0'; digit <= '9'; ++digit) {
        if (const std::optional<Place> next = after(places_[i], digit)) add_edge(i, digit, *next);
      }
    }
    return Automaton(std::move(states_));
  }

 private:
  struct Place {
    bool in_fraction = false;
    bool is_zero = false;  // the whole part is 0, so no digit may follow
    std::size_t n_digits = 0;
    Order low = Order::kEqual;
    Order high = Order::kEqual;
    std::uint64_t remainder = 0;
    auto operator<=>(const Place&) const = default;
  };

  static Order next_order(Order order, char digit, char bound_digit) {
    if (order != Order::kEqual || digit == bound_digit) return order;
    return digit < bound_digit ? Order::kLess : Order::kGreater;
  }
  static Order whole_order(Order order, std::size_t n_digits, const Decimal& bound) {
    if (n_digits < bound.whole.size()) return Order::kLess;
    return n_digits > bound.whole.size() ? Order::kGreater : order;
  }
  static char digit_at(std::string_view digits, std::size_t i) {
    return i < digits.size() ? digits[i] : '0';
  }
  static Order order_after(const Place& place, Order order, char digit, const Decimal& bound) {
    const std::string_view digits = place.in_fraction ? bound.fraction : bound.whole;
    return next_order(order, digit, digit_at(digits, place.n_digits));
  }

  static bool can_take_point(const Place& place) {
    return !place.in_fraction && place.n_digits > 0;
  }

  std::optional<Place> after(const Place& place, char digit) const {
    if (!place.in_fraction && place.is_zero) return std::nullopt;
    const std::size_t n_max = place.in_fraction ? multiple_.n_places : kDigitsMax;
    if (place.n_digits == n_max) return std::nullopt;
    Place next = place;
    next.is_zero = !place.in_fraction && place.n_digits == 0 && digit == '0';
    next.low = order_after(place, place.low, digit, low_.value);
    if (high_) next.high = order_after(place, place.high, digit, high_->value);
    next.remainder =
        (place.remainder * 10 + static_cast<std::uint64_t>(digit - '0')) % multiple_.factor;
    ++next.n_digits;
    return next;
  }

  // The order if the number ended here.
  static Order final_order(const Place& place, Order order, const Decimal& bound) {
    if (!place.in_fraction) order = whole_order(order, place.n_digits, bound);
    const std::size_t n_compared = place.in_fraction ? place.n_digits : 0;
    return order == Order::kEqual && n_compared < bound.fraction.size() ? Order::kLess : order;
  }

  bool can_end(const Place& place) const {
    if (place.n_digits == 0) return false;
    const Order low = final_order(place, place.low, low_.value);
    if (low == Order::kLess || (low == Order::kEqual && low_.exclusive)) return false;
    if (high_) {
      const Order high = final_order(place, place.high, high_->value);
      if (high == Order::kGreater || (high == Order::kEqual && high_->exclusive)) return false;
    }
    std::uint64_t remainder = place.remainder;
    const std::size_t n_places = place.in_fraction ? place.n_digits : 0;
    for (std::size_t i = n_places; i < multiple_.n_places && multiple_.factor > 1; ++i) {
      remainder = remainder * 10 % multiple_.factor;
    }
    return remainder == 0;
  }

  std::uint32_t state_of(const Place& place) {
    const auto next = static_cast<std::uint32_t>(places_.size());
    const auto [found, is_new] = ids_.try_emplace(place, next);
    if (is_new) {
      places_.push_back(place);
      states_.push_back({.accepts = can_end(place), .edges = {}});
    }
    return found->second;
  }

  void add_edge(std::size_t from, char c, const Place& next) {
    const std::uint32_t to = state_of(next);
    const auto code_point = static_cast<char32_t>(c);
    std::vector<Automaton::Edge>& edges = states_[from].edges;
    if (!edges.empty() && edges.back().to == to && edges.back().range.last + 1 == code_point) {
      edges.back().range.last = code_point;
    } else {
      edges.push_back({{code_point, code_point}, to});
    }
  }

  Bound low_;
  std::optional<Bound> high_;
  bool is_integer_;
  Multiple multiple_;
  std::map<Place, std::uint32_t> ids_;
  std::vector<Place> places_;
  std::vector<Automaton::State> states_;
};

Bound zero() { return {.value = {}, .exclusive = false}; }
Bound above_zero() { return {.value = {}, .exclusive = true}; }

Bound negated(const Bound& bound) { return {bound.value.negated(), bound.exclusive}; }

bool is_higher(const Bound& a, const Bound& b) {
  return a.value > b.value || (a.value == b.value && a.exclusive && !b.exclusive);
}
bool is_lower(const Bound& a, const Bound& b) {
  return a.value < b.value || (a.value == b.value && a.exclusive && !b.exclusive);
}

// "-" followed by the texts of `magnitude`.
Automaton with_minus(const Automaton& magnitude) {
  std::vector<Automaton::State> states = {{.accepts = false, .edges = {{{'-', '-'}, 1}}}};
  for (Automaton::State state : magnitude.states()) {
    for (Automaton::Edge& edge : state.edges) ++edge.to;
    states.push_back(std::move(state));
  }
  return Automaton(std::move(states));
}

Result<void> check_digits(const std::optional<Bound>& bound) {
  if (!bound ||
      (bound->value.whole.size() <= kDigitsMax && bound->value.fraction.size() <= kDigitsMax)) {
    return {};
  }
  return fail(
      Code::kUnsupported,
      format_text("a bound with more than {} digits before or after the point", kDigitsMax));
}

}  // namespace

void NumberRange::raise_low(const Bound& bound) {
  if (!low || is_higher(bound, *low)) low = bound;
}

void NumberRange::lower_high(const Bound& bound) {
  if (!high || is_lower(bound, *high)) high = bound;
}

void NumberRange::intersect(const NumberRange& other) {
  is_integer = is_integer || other.is_integer;
  if (other.low) raise_low(*other.low);
  if (other.high) lower_high(*other.high);
  for (const Decimal& multiple : other.multiples) {
    if (std::ranges::find(multiples, multiple) == multiples.end()) multiples.push_back(multiple);
  }
}

bool NumberRange::empty() const {
  if (!low || !high) return false;
  return low->value > high->value ||
         (low->value == high->value && (low->exclusive || high->exclusive));
}

bool NumberRange::has_small_multiples() const {
  return std::ranges::all_of(multiples, [](const Decimal& multiple) {
    return multiple.fraction.size() <= kDigitsMax &&
           scaled(multiple, multiple.fraction.size()).has_value();
  });
}

bool NumberRange::contains(const Decimal& value) const {
  if (is_integer && !value.fraction.empty()) return false;
  if (low && (value < low->value || (value == low->value && low->exclusive))) return false;
  if (high && (value > high->value || (value == high->value && high->exclusive))) return false;
  return std::ranges::all_of(multiples, [&value](const Decimal& multiple) {
    // Divides digit by digit. The value must not have more decimal places than the multiple.
    if (value.fraction.size() > multiple.fraction.size()) return false;
    const std::optional<std::uint64_t> factor = scaled(multiple, multiple.fraction.size());
    if (!factor) return false;
    std::string digits = value.whole + value.fraction;
    digits.append(multiple.fraction.size() - value.fraction.size(), '0');
    std::uint64_t remainder = 0;
    for (const char digit : digits) {
      remainder = (remainder * 10 + static_cast<std::uint64_t>(digit - '0')) % *factor;
    }
    return remainder == 0;
  });
}

Result<Automaton> automaton_of(const NumberRange& range, WorkBudget& budget) {
  for (const std::optional<Bound>& bound : {range.low, range.high}) {
    if (const Result<void> fits = check_digits(bound); !fits) return std::unexpected(fits.error());
  }
  const Result<Multiple> multiple = common_multiple(range);
  if (!multiple) return std::unexpected(multiple.error());
  Automaton texts({{.accepts = false, .edges = {}}});
  const bool some_not_negative = !range.high || !range.high->value.negative;
  if (some_not_negative) {
    const bool from_zero = !range.low || range.low->value.negative;
    Result<Automaton> found =
        DigitReader(from_zero ? zero() : *range.low, range.high, range.is_integer, *multiple)
            .run(budget);
    if (!found) return found;
    texts = std::move(*found);
  }
  const bool some_negative = !range.low || range.low->value.negative;
  if (some_negative) {
    const bool to_zero = !range.high || !range.high->value.negative;
    const std::optional<Bound> high = range.low ? std::optional(negated(*range.low)) : std::nullopt;
    const Result<Automaton> found = DigitReader(to_zero ? above_zero() : negated(*range.high), high,
                                                range.is_integer, *multiple)
                                        .run(budget);
    if (!found) return found;
    return combine(texts, with_minus(*found), Combination::kEither, budget);
  }
  return texts;
}

std::string number_text(const nlohmann::ordered_json& number) {
  const Decimal decimal = decimal_of(number);
  const bool is_short = decimal.whole.size() <= kDigitsMax && decimal.fraction.size() <= kDigitsMax;
  return is_short ? decimal.text() : number.dump();
}

}  // namespace slipstream
