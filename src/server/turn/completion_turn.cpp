#include "server/turn/completion_turn.h"

#include <string>
#include <utility>
#include <variant>

#include "server/turn/fill_prompt.h"
#include "server/turn/generation.h"

namespace slipstream {
namespace {

ApiResult<std::vector<Token>> prompt_with_suffix(const ServedModel& model, Prompt& prompt,
                                                 const CompletionRequest& request) {
  auto* text = std::get_if<std::string>(&prompt);
  if (text == nullptr) return refuse("prompt", "'prompt' must be a text where there is a 'suffix'");
  const FillIn fill{.prefix = std::move(*text),
                    .line = {},
                    .suffix = request.suffix,
                    .extra = {},
                    .prefix_name = "prompt",
                    .suffix_name = "suffix"};
  ApiResult<FillPrompt> filled = fill_prompt(model, fill, request.options.max_tokens.value_or(0));
  if (!filled) return std::unexpected(filled.error());
  return std::move(filled->tokens);
}

}  // namespace

ApiResult<void> check_completion(const ServedModel& model) {
  // submit() checks again.
  if (const Result<void> room = model.engine->check_room(); !room) {
    return std::unexpected(to_api_error(room.error()));
  }
  return {};
}

ApiResult<std::vector<std::vector<Token>>> take_prompts(const ServedModel& model,
                                                        CompletionRequest& request) {
  std::vector<std::vector<Token>> prompts;
  for (Prompt& prompt : request.prompts) {
    if (!request.suffix.empty()) {
      ApiResult<std::vector<Token>> filled = prompt_with_suffix(model, prompt, request);
      if (!filled) return std::unexpected(filled.error());
      prompts.push_back(std::move(*filled));
      continue;
    }
    ApiResult<std::vector<Token>> tokens = to_tokens(model.engine->vocabulary(), "prompt",
                                                     std::move(prompt), model.engine->n_context());
    if (!tokens) return std::unexpected(tokens.error());
    prompts.push_back(std::move(*tokens));
  }
  return prompts;
}

ApiResult<std::unique_ptr<Turn>> begin_completion(ServedModel& model, HttpExchange& exchange,
                                                  const CompletionRequest& request,
                                                  const std::vector<std::vector<Token>>& prompts,
                                                  const Client& client) {
  const GenerationOptions& options = request.options;
  auto turn = std::make_unique<Turn>(model, exchange, client.account,
                                     Turn::Options{.n_per_prompt = options.n});
  for (const std::vector<Token>& prompt : prompts) {
    const ApiResult<int> n_tokens =
        tokens_to_generate("prompt", prompt.size(), options, model.engine->n_context());
    if (!n_tokens) return std::unexpected(n_tokens.error());
    for (int i = 0; i < options.n; ++i) {
      GenerateRequest generate = make_request(options, prompt, *n_tokens, i, client);
      generate.wants_prompt_logprobs = request.echoes && options.sampling.n_top_logprobs >= 0;
      const Result<void> submitted = turn->submit(std::move(generate));
      if (!submitted) return std::unexpected(to_api_error(submitted.error()));
      if (i == 0) client.charge_prompt(prompt.size());
    }
  }
  return turn;
}

}  // namespace slipstream
