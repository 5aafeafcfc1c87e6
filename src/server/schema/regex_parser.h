// The regular expressions of `pattern`: the part of ECMA-262 (flag u) that describes a regular set.
//
//   literals, . [a-z] [^"] \d \D \w \W \s \S \t \n \r \f \v \0 \cA \x41 \u0041 \u{1F600} \. \/
//   groups (x) (?:x) (?<name>x), x|y, x* x+ x? x{2} x{2,} x{2,5}, each also lazy (x*?), ^ and $
//
// Refused: lookaround, backreferences, \b, \p{...}, modifiers. Escaped punctuation stands for
// itself, even where flag u would not allow the escape (\- outside a class).
//
// Threads: pure function.
// Errors:  kUnsupported for what is refused; kInvalidArgument for what is not a regular expression,
//          and for more than SchemaLimits::pattern_* allow.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/schema/code_point_set.h"

namespace slipstream {

struct Regex {
  enum class Kind : std::uint8_t {
    kSet,       // one character of `set`
    kSequence,  // the parts, one after the other
    kChoice,    // one of the parts
    kRepeat,    // the single part, n_min to n_max times
    kStart,     // ^
    kEnd,       // $
  };
  Kind kind;
  CodePointSet set = {};
  std::vector<Regex> parts = {};
  std::uint32_t n_min = 0;
  std::optional<std::uint32_t> n_max = {};
};

[[nodiscard]] Result<Regex> parse_regex(std::string_view pattern);

}  // namespace slipstream
