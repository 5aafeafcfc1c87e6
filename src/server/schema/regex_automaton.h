// From a regular expression to the texts that it finds something in: `pattern` is not anchored, so
// "b" is every text with a b, and "^b$" only "b".
//
// Threads: pure functions.
// Errors:  kUnsupported for an automaton past SchemaLimits::automaton_states_max, or too much work.
#pragma once

#include <string_view>

#include "base/result.h"
#include "server/schema/automaton.h"
#include "server/schema/regex_parser.h"
#include "server/schema/work_budget.h"

namespace slipstream {

[[nodiscard]] Result<Automaton> automaton_of(const Regex& regex, WorkBudget& budget);

// Parsed and converted.
[[nodiscard]] Result<Automaton> automaton_of_pattern(std::string_view pattern, WorkBudget& budget);

}  // namespace slipstream
