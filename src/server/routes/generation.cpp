#include "server/routes/generation.h"

#include <random>

#include "base/format.h"

namespace slipstream {

ApiResult<std::vector<Token>> to_tokens(const Vocabulary& vocabulary, const std::string& param,
                                        const Prompt& prompt) {
  if (const auto* tokens = std::get_if<std::vector<Token>>(&prompt)) return *tokens;
  Result<std::vector<Token>> tokens =
      vocabulary.tokenize(std::get<std::string>(prompt), true, true);
  if (!tokens) return refuse(param, tokens.error().message);
  return std::move(*tokens);
}

ApiResult<int> tokens_to_generate(const std::string& param, std::size_t n_prompt,
                                  const GenerationOptions& options, int n_context) {
  const auto n_used = static_cast<std::int64_t>(n_prompt);
  const std::int64_t n_left = n_context - n_used;
  const std::int64_t n_asked = options.max_tokens.value_or(1);
  if (n_left < n_asked) {
    return std::unexpected(ApiError{
        .message = format_text("This model's maximum context length is {} tokens. However, you "
                               "requested {} tokens ({} in the prompt, {} in the completion).",
                               n_context, n_used + n_asked, n_used, n_asked),
        .param = n_left < 1 ? param : "max_tokens",
        .code = "context_length_exceeded"});
  }
  return static_cast<int>(options.max_tokens.value_or(static_cast<int>(n_left)));
}

GenerateRequest make_request(const GenerationOptions& options, std::vector<Token> prompt,
                             int n_tokens_max, int idx, const Client& client) {
  GenerateRequest request{.prompt = std::move(prompt),
                          .n_tokens_max = n_tokens_max,
                          .sampling = options.sampling,
                          .stops = options.stops,
                          .ignores_end = options.ignores_end,
                          .client = client.name,
                          .salt = client.salt};
  if (request.sampling.seed) *request.sampling.seed += static_cast<std::uint32_t>(idx);
  return request;
}

Json finish_reason_of(const Ending& ending) { return std::string(name(ending.reason)); }

std::string new_id(std::string_view prefix) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return format_text("{}-{:016x}{:016x}", prefix, random(), random());
}

}  // namespace slipstream
