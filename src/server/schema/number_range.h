// NumberRange: the numbers that `type: integer`, minimum, maximum, their exclusive forms and
// multipleOf allow, and the texts of those numbers.
//
// A number without such keywords may have any JSON spelling. Otherwise it is written plainly: no
// exponent, and no fraction for an integer, so that its digits tell whether it is allowed. At most
// kDigitsMax digits stand before and after the point. That is enough for 64 bits, and keeps a model
// from writing digits for ever.
//
// Threads: plain data and pure functions.
// Errors:  kUnsupported for bounds with more digits, and for multiples that are too large to track.
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
  // Whether each multiple has few enough digits to divide by it.
  [[nodiscard]] bool has_small_multiples() const;
  // Whether the bounds exclude every number.
  [[nodiscard]] bool empty() const;
};

// The plain spellings of the numbers in the range.
[[nodiscard]] Result<Automaton> automaton_of(const NumberRange& range, WorkBudget& budget);

// How answers spell a number of the schema: plainly, unless that takes too many digits (1e+300).
[[nodiscard]] std::string number_text(const nlohmann::ordered_json& number);

}  // namespace slipstream
