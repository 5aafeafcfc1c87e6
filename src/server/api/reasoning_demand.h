// ReasoningDemand: how much a request wants the model to reason before it answers.
//
//   chat       "reasoning_effort"; "thinking_budget_tokens" (llama-server's name),
//              "thinking_token_budget" (vLLM's)
//   Messages   "thinking": {"type", "budget_tokens"}; "output_config": {"effort"}
//   Responses  "reasoning": {"effort"}, which becomes "reasoning_effort"
//
// Threads: plain data. Errors: kept in the JsonFields (json_fields.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/json_fields.h"

namespace slipstream {

struct ReasoningDemand {
  std::optional<bool> is_on = {};        // none: the template's default
  std::string effort = {};               // one of kReasoningEfforts; empty: none was given
  std::optional<int> n_tokens_max = {};  // limit for the reasoning
};

// Reads the fields of the chat API.
[[nodiscard]] ReasoningDemand read_reasoning(JsonFields& fields);

// Reads the effort from the field `name`. "none" turns reasoning off.
void read_effort(JsonFields& fields, std::string_view name, ReasoningDemand& demand);

// Reads the limit of reasoning tokens from the field `name`. -1 means no limit.
void read_budget(JsonFields& fields, std::string_view name, ReasoningDemand& demand);

}  // namespace slipstream
