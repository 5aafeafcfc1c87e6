// The texts that meet the demands on a string, as one automaton.
//
// Threads: pure functions.
// Errors:  kUnsupported if it is too large or takes too long.
#pragma once

#include "base/result.h"
#include "server/schema/automaton.h"
#include "server/schema/shape.h"
#include "server/schema/work_budget.h"

namespace slipstream {

[[nodiscard]] Result<Automaton> automaton_of(const StringDemands& demands, WorkBudget& budget);

[[nodiscard]] bool is_met(const StringDemands& demands, std::string_view utf8);

}  // namespace slipstream
