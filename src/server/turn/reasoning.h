// Applies a request's demand for reasoning to a model: sets variables that the model's template
// knows, or otherwise a limit of tokens, which the sampler enforces (reasoning_watch.h).
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string_view>

#include "engine/sampling/sampling_params.h"
#include "server/api/reasoning_demand.h"
#include "server/json.h"
#include "server/output/chat_format.h"
#include "server/template/chat_template.h"

namespace slipstream {

// Adds the variables that the client did not set itself.
void set_reasoning_variables(const ReasoningDemand& demand, const TemplateAbilities& abilities,
                             Json& variables);

// The number of tokens that the reasoning may have; none: no limit.
[[nodiscard]] std::optional<int> reasoning_limit(const ReasoningDemand& demand,
                                                 const TemplateAbilities& abilities);

// How the sampler recognizes reasoning in answers of this format, after this prompt.
[[nodiscard]] ReasoningParams reasoning_params(const ChatFormat& format, std::string_view prompt);

}  // namespace slipstream
