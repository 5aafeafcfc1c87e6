// GrammarRules: a grammar as it is written, before it is known to make sense. What lies between the
// parser (gbnf_parser.h) and Grammar.
//
// Threads: plain data that refers to the grammar's text. Errors: check_rules() says
// kInvalidArgument and names the rule.
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
    // In the grammar's text. Groups and repetitions are rules with the name of that they stand in.
    std::string_view name;
    bool defined = false;
    std::vector<Sequence> alternatives = {};
  };

  std::vector<Rule> rules;
  std::vector<CharClass> classes;
  std::uint32_t root = 0;
};

// Every rule that is used has a definition, and none can come back to itself without a character in
// between (left recursion): matching would never end.
[[nodiscard]] Result<void> check_rules(const GrammarRules& grammar);

}  // namespace slipstream
