#include "server/api/completion_request.h"

#include <algorithm>

namespace slipstream {
namespace {

constexpr std::size_t kPromptsMax = 64;
constexpr int kTopLogprobsMax = 20;

bool is_token(const Json& value) {
  return value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
         value.get<std::int64_t>() <= INT32_MAX;
}

bool is_tokens(const Json& value) {
  return value.is_array() && !value.empty() && std::ranges::all_of(value, is_token);
}

// "text", ["text", ...], [1, 2, ...] or [[1, 2, ...], ...]
std::vector<Prompt> read_prompts(JsonFields& fields) {
  const Json* prompt = fields.any("prompt");
  if (prompt == nullptr) {
    fields.refuse("prompt", "'prompt' is required");
    return {};
  }
  if (prompt->is_string()) return {prompt->get<std::string>()};
  if (is_tokens(*prompt)) return {prompt->get<std::vector<Token>>()};
  std::vector<Prompt> prompts;
  if (prompt->is_array() && prompt->size() <= kPromptsMax) {
    for (const Json& item : *prompt) {
      if (item.is_string()) {
        prompts.emplace_back(item.get<std::string>());
      } else if (is_tokens(item)) {
        prompts.emplace_back(item.get<std::vector<Token>>());
      }
    }
    if (!prompts.empty() && prompts.size() == prompt->size()) return prompts;
  }
  fields.refuse(
      "prompt",
      "'prompt' must be a string, an array of token ids, or an array of 1 to 64 of these");
  return {};
}

}  // namespace

ApiResult<CompletionRequest> read_completion_request(const Json& body) {
  JsonFields fields(body);
  CompletionRequest request{.options = read_generation_options(fields),
                            .prompts = read_prompts(fields)};
  request.echoes = fields.boolean("echo").value_or(false);
  if (const auto n = fields.integer("logprobs", 0, kTopLogprobsMax)) {
    request.options.sampling.n_top_logprobs = static_cast<int>(*n);
  }
  if (!request.options.max_tokens) request.options.max_tokens = 16;  // as OpenAI's does
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty()) {
    fields.refuse("suffix", "'suffix' is not supported");
  }
  if (const auto best_of = fields.integer("best_of", 1, INT32_MAX);
      best_of && *best_of != request.options.n) {
    fields.refuse("best_of", "'best_of' must equal 'n': answers are not ranked");
  }
  if (fields.error()) return std::unexpected(*fields.error());
  return request;
}

}  // namespace slipstream
