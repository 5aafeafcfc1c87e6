// ReasoningDemand: how much a request wants the model to reason before it answers.
//
//   chat       "reasoning_effort"; "thinking_budget_tokens" (llama-server's name),
//              "thinking_token_budget" (vLLM's)
//   Messages   "thinking": {"type", "budget_tokens"}; "output_config": {"effort"}
//   Responses  "reasoning": {"effort"}, which becomes "reasoning_effort"
//
// Threads: plain data. Errors: into the fields (json_fields.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/json_fields.h"

namespace slipstream {

struct ReasoningDemand {
  std::optional<bool> is_on = {};        // none: as the template does by itself
  std::string effort = {};               // one of kReasoningEfforts; empty: none was named
  std::optional<int> n_tokens_max = {};  // of reasoning
};

// The fields of the chat API.
[[nodiscard]] ReasoningDemand read_reasoning(JsonFields& fields);

// Reads the effort that is called `name` in these fields: "none" turns reasoning off.
void read_effort(JsonFields& fields, std::string_view name, ReasoningDemand& demand);

// Reads a number of tokens that is called `name` in these fields.
void read_budget(JsonFields& fields, std::string_view name, ReasoningDemand& demand);

}  // namespace slipstream
