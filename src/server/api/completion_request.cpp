#include "server/api/completion_request.h"

namespace slipstream {
namespace {

constexpr std::size_t kPromptsMax = 64;

}  // namespace

ApiResult<CompletionRequest> read_completion_request(const Json& body) {
  JsonFields fields(body);
  CompletionRequest request{.options = read_generation_options(fields),
                            .prompts = read_prompts(fields, "prompt", kPromptsMax)};
  request.echoes = fields.boolean("echo").value_or(false);
  if (const auto n = fields.integer("logprobs", 0, kTopLogprobsMax)) {
    request.options.sampling.n_top_logprobs = static_cast<int>(*n);
  }
  const bool has_limit = fields.any("max_tokens") != nullptr ||
                         fields.any("max_completion_tokens") != nullptr ||
                         fields.any("n_predict") != nullptr;
  if (!has_limit && !request.options.max_tokens)
    request.options.max_tokens = 16;  // OpenAI's default
  request.suffix = fields.text("suffix").value_or("");
  if (!request.suffix.empty() && request.echoes) {
    fields.refuse("echo", "'echo' and 'suffix' exclude each other");
  }
  if (const auto best_of = fields.integer("best_of", 1, INT32_MAX);
      best_of && *best_of != request.options.n) {
    fields.refuse("best_of", "'best_of' must equal 'n': answers are not ranked");
  }
  if (fields.error()) return std::unexpected(*fields.error());
  return request;
}

}  // namespace slipstream
