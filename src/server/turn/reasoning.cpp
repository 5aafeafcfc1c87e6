#include "server/turn/reasoning.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace slipstream {
namespace {

// The limits for templates that do not know efforts. Higher efforts have no limit.
struct EffortLimit {
  std::string_view effort;
  int n_tokens;
};
constexpr EffortLimit kEffortLimits[] = {{"minimal", 128}, {"low", 1024}, {"medium", 8192}};

// Returns the effort itself if the template accepts it, otherwise the next higher one that it
// accepts, or its highest.
std::string_view effort_for(const TemplateAbilities& abilities, std::string_view effort) {
  auto at = std::ranges::find(kReasoningEfforts, effort);
  for (; at != std::end(kReasoningEfforts); ++at) {
    if (std::ranges::contains(abilities.efforts, *at)) return *at;
  }
  return abilities.efforts.empty() ? effort : abilities.efforts.back();
}

void set_if_absent(Json& variables, const char* name, Json value) {
  if (!variables.contains(name)) variables[name] = std::move(value);
}

}  // namespace

void set_reasoning_variables(const ReasoningDemand& demand, const TemplateAbilities& abilities,
                             Json& variables) {
  if (variables.is_null()) variables = Json::object();
  if (demand.is_on && abilities.takes_thinking) {
    set_if_absent(variables, "enable_thinking", *demand.is_on);
    set_if_absent(variables, "thinking", *demand.is_on);
  }
  if (!demand.effort.empty()) {
    set_if_absent(variables, "reasoning_effort", effort_for(abilities, demand.effort));
  }
  if (demand.n_tokens_max && abilities.takes_budget) {
    set_if_absent(variables, "thinking_budget", *demand.n_tokens_max);
  }
}

std::optional<int> reasoning_limit(const ReasoningDemand& demand,
                                   const TemplateAbilities& abilities) {
  if (demand.is_on == false && !abilities.takes_thinking) return 0;
  if (demand.n_tokens_max || abilities.takes_effort) return demand.n_tokens_max;
  const auto* limit = std::ranges::find(kEffortLimits, demand.effort, &EffortLimit::effort);
  if (limit == std::end(kEffortLimits)) return std::nullopt;
  return limit->n_tokens;
}

ReasoningParams reasoning_params(const ChatFormat& format, std::string_view prompt) {
  const ReasoningMarkup markup = reasoning_markup(format.reasoning);
  // Without "<|message|>": the channel alone says that a message is reasoning.
  const std::string_view open = markup.open.substr(0, markup.open.find("<|message|>"));
  return {.open = std::string(open),
          .ends = ends_of_reasoning(format),
          .forced_end = std::string(markup.close) + std::string(markup.before_answer),
          .opens_anywhere = tool_call_format(format.tool_calls).markup_is_tokens,
          .is_open = opens_reasoning(prompt, format.reasoning)};
}

}  // namespace slipstream
