// GrammarRules: a grammar as written, before it is checked. The parser (gbnf_parser.h) makes it,
// and Grammar is made from it.
//
// Threads: plain data that refers to the grammar's text.
// Errors:  check_rules(): kInvalidArgument with the name of the rule.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/sampling/grammar.h"

namespace slipstream {

struct GrammarRules {
  using Sequence = std::vector<GrammarSymbol>;
  struct Rule {
    // Points into the grammar's text. Groups and repetitions have the name of the enclosing rule.
    std::string_view name;
    bool defined = false;
    std::vector<Sequence> alternatives = {};
  };

  std::vector<Rule> rules;
  std::vector<CharClass> classes;
  std::uint32_t root = 0;
};

// Checks that every rule that is used is defined, and that none can reach itself again without a
// character in between (left recursion): matching would never end.
[[nodiscard]] Result<void> check_rules(const GrammarRules& grammar);

}  // namespace slipstream
