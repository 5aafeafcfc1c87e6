#include "server/api/reasoning_demand.h"

#include <algorithm>

#include "base/format.h"
#include "server/output/chat_format.h"

namespace slipstream {

void read_effort(JsonFields& fields, std::string_view name, ReasoningDemand& demand) {
  const std::optional<std::string> effort = fields.text(name);
  if (!effort) return;
  if (*effort == "none") {
    demand.is_on = false;
  } else if (std::ranges::contains(kReasoningEfforts, *effort)) {
    demand.is_on = true;
    demand.effort = *effort;
  } else {
    fields.refuse(name, format_text("'{}' must be none, minimal, low, medium, high, xhigh or max",
                                    fields.path_of(name)));
  }
}

void read_budget(JsonFields& fields, std::string_view name, ReasoningDemand& demand) {
  constexpr std::int64_t kBudgetMax = std::int64_t{1} << 30;
  const auto n = fields.integer(name, -1, kBudgetMax);  // -1: no limit
  if (n && *n >= 0) demand.n_tokens_max = static_cast<int>(*n);
}

ReasoningDemand read_reasoning(JsonFields& fields) {
  ReasoningDemand demand;
  read_effort(fields, "reasoning_effort", demand);
  read_budget(fields, "thinking_budget_tokens", demand);
  read_budget(fields, "thinking_token_budget", demand);
  return demand;
}

}  // namespace slipstream
