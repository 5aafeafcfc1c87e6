// Converts a regular expression to the set of texts in which it finds a match. `pattern` is not
// anchored, so "b" stands for every text with a b, and "^b$" only for "b".
//
// Threads: pure functions.
// Errors:  kUnsupported for an automaton past SchemaLimits::automaton_states_max, or for
//          too much work.
#pragma once

#include <string_view>

#include "base/result.h"
#include "server/schema/automaton.h"
#include "server/schema/regex_parser.h"
#include "server/schema/work_budget.h"

namespace slipstream {

[[nodiscard]] Result<Automaton> automaton_of(const Regex& regex, WorkBudget& budget);

// Parses and converts the pattern.
[[nodiscard]] Result<Automaton> automaton_of_pattern(std::string_view pattern, WorkBudget& budget);

}  // namespace slipstream
