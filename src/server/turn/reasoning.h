// What a request's demand for reasoning means with one model: variables of its template where it
// knows them, and otherwise a limit of tokens, which the sampler keeps (reasoning_watch.h).
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

// How many tokens the model may reason. None: as many as it likes.
[[nodiscard]] std::optional<int> reasoning_limit(const ReasoningDemand& demand,
                                                 const TemplateAbilities& abilities);

// Where reasoning is in the answers of such a model, after this prompt.
[[nodiscard]] ReasoningParams reasoning_params(const ChatFormat& format, std::string_view prompt);

}  // namespace slipstream
