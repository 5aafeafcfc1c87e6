// NumberRange: what `type: integer`, minimum, maximum, their exclusive forms and multipleOf leave
// of the numbers, and the texts of those numbers.
//
// A number without such keywords is written in any way JSON has. Otherwise it is written plainly,
// without an exponent, and an integer without a fraction: then what it must be can be read off its
// digits. Up to kDigitsMax of them before and after the point, enough for 64 bits: a model must not
// go on with digits for ever.
//
// Threads: plain data and pure functions.
// Errors:  kUnsupported for bounds with more digits, and multiples too large to keep track of.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/schema/automaton.h"
#include "server/schema/decimal.h"
#include "server/schema/work_budget.h"

namespace slipstream {

struct NumberRange {
  static constexpr std::size_t kDigitsMax = 20;
  struct Bound {
    Decimal value;
    bool exclusive;
  };
  bool is_integer = false;
  std::optional<Bound> low;
  std::optional<Bound> high;
  std::vector<Decimal> multiples;  // positive

  void raise_low(const Bound& bound);
  void lower_high(const Bound& bound);
  void intersect(const NumberRange& other);
  [[nodiscard]] bool is_plain() const { return !low && !high && multiples.empty(); }
  [[nodiscard]] bool contains(const Decimal& value) const;
  // Whether each multiple's digits are few enough to divide by.
  [[nodiscard]] bool has_small_multiples() const;
  // Whether no number lies between the bounds.
  [[nodiscard]] bool empty() const;
};

// The plain texts of the range's numbers.
[[nodiscard]] Result<Automaton> automaton_of(const NumberRange& range, WorkBudget& budget);

// How we write a number of the schema: plainly, unless that takes too many digits (1e+300).
[[nodiscard]] std::string number_text(const nlohmann::ordered_json& number);

}  // namespace slipstream
