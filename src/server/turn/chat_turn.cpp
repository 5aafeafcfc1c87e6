#include "server/turn/chat_turn.h"

#include <utility>
#include <vector>

#include "server/bounded_json.h"
#include "server/demand/answer_grammar.h"
#include "server/output/output_parser.h"
#include "server/turn/chat_prompt.h"
#include "server/turn/generation.h"
#include "server/turn/prompt_boundaries.h"
#include "server/turn/reasoning.h"

namespace slipstream {

ApiResult<void> check_chat(const ServedModel& model, const Json& body,
                           std::initializer_list<std::string_view> fields) {
  // submit() checks again.
  if (const Result<void> room = model.engine->check_room(); !room) {
    return std::unexpected(to_api_error(room.error()));
  }
  if (!model.chat_template) {
    return refuse("model", "This model has no chat template: use /v1/completions");
  }
  std::vector<FieldSize> sizes;
  for (const std::string_view name : fields) {
    if (const Json* value = member(body, name)) sizes.push_back({name, n_values(*value)});
  }
  return check_values(model, sizes);
}

ApiResult<std::string> prompt_text(const ServedModel& model, ChatRequest request,
                                   const Client& client) {
  const ApiResult<ChatPrompt> prompt = make_prompt(model, request, client);
  if (!prompt) return std::unexpected(prompt.error());
  return prompt->text.text();
}

ApiResult<std::size_t> count_prompt(const ServedModel& model, ChatRequest request,
                                    const Client& client) {
  const ApiResult<ChatPrompt> prompt = make_prompt(model, request, client);
  if (!prompt) return std::unexpected(prompt.error());
  const ApiResult<PromptTokens> whole = tokens_of(model, *prompt);
  if (!whole) return std::unexpected(whole.error());
  const std::size_t n_tokens = whole->tokens.size();
  // If there are more tokens than the context has room for, not all of them were counted.
  const auto room = tokens_to_generate("messages", n_tokens, {}, model.engine->n_context());
  if (!room) return std::unexpected(room.error());
  return n_tokens;
}

ApiResult<ChatPlan> plan_chat(const ServedModel& model, ChatRequest& request,
                              const Client& client) {
  ApiResult<ChatPrompt> made = make_prompt(model, request, client);
  if (!made) return std::unexpected(made.error());
  const std::string& prompt = made->text.text();
  ApiResult<PromptTokens> whole = tokens_of(model, *made);
  if (!whole) return std::unexpected(whole.error());
  const ApiResult<int> n_tokens = tokens_to_generate("messages", whole->tokens.size(),
                                                     request.options, model.engine->n_context());
  if (!n_tokens) return std::unexpected(n_tokens.error());
  ApiResult<std::string> grammar =
      grammar_of_answer(*model.chat_template, model.engine->vocabulary(), request, prompt);
  if (!grammar) return std::unexpected(grammar.error());
  request.options.sampling.grammar = std::move(*grammar);

  const ChatFormat& format = model.chat_template->format();
  ReasoningParams& reasoning = request.options.sampling.reasoning;
  reasoning = reasoning_params(format, prompt);
  reasoning.n_tokens_max = reasoning_limit(request.reasoning, model.chat_template->abilities());
  std::vector<int> boundaries;
  if (model.engine->saves_at_boundaries()) {
    boundaries =
        prompt_boundaries(model.engine->vocabulary(), made->text, whole->tokens, made->first_words);
  }
  return ChatPlan{.prompt = std::move(whole->tokens),
                  .images = std::move(whole->images),
                  .n_tokens_max = *n_tokens,
                  .boundaries = std::move(boundaries),
                  .parsing = {.format = format,
                              .tools = ToolSet(request.tools),
                              .starts_in_reasoning = reasoning.is_open,
                              .ends_with_call = !request.tool_choice.allows_several},
                  .sources = std::move(made->sources),
                  .n_turns_dropped = made->n_turns_dropped};
}

GenerateRequest request_of(const ChatPlan& plan, const ChatRequest& request, int idx,
                           const Client& client) {
  GenerateRequest generate =
      make_request(request.options, plan.prompt, plan.n_tokens_max, idx, client);
  generate.shows_control_tokens = true;  // markup consists of them
  generate.boundaries = plan.boundaries;
  generate.images = plan.images;
  return generate;
}

ApiResult<std::unique_ptr<Turn>> begin_chat(ServedModel& model, HttpExchange& exchange,
                                            ChatRequest request, const Client& client) {
  ApiResult<ChatPlan> plan = plan_chat(model, request, client);
  if (!plan) return std::unexpected(plan.error());
  auto turn = std::make_unique<Turn>(model, exchange, client.account,
                                     Turn::Options{.n_per_prompt = request.options.n,
                                                   .parsing = std::move(plan->parsing),
                                                   .sources = std::move(plan->sources),
                                                   .n_turns_dropped = plan->n_turns_dropped});
  for (int i = 0; i < request.options.n; ++i) {
    const Result<void> submitted = turn->submit(request_of(*plan, request, i, client));
    if (!submitted) return std::unexpected(to_api_error(submitted.error()));
  }
  client.charge_prompt(plan->prompt.size());
  if (plan->n_turns_dropped > 0 && model.metrics != nullptr) model.metrics->count_rescued();
  return turn;
}

}  // namespace slipstream
