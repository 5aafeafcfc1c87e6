#include "server/turn/generation.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace slipstream {

ApiResult<std::vector<Token>> to_tokens(const Vocabulary& vocabulary, const std::string& param,
                                        Prompt prompt, int n_tokens_max) {
  if (auto* tokens = std::get_if<std::vector<Token>>(&prompt)) return std::move(*tokens);
  const std::string& text = std::get<std::string>(prompt);
  if (const auto fits = check_length(vocabulary, param, text, n_tokens_max); !fits) {
    return std::unexpected(fits.error());
  }
  Result<std::vector<Token>> tokens = vocabulary.tokenize(text, true, true);
  if (!tokens) return refuse(param, tokens.error().message);
  return std::move(*tokens);
}

ApiResult<void> check_length(const Vocabulary& vocabulary, const std::string& param,
                             std::string_view text, int n_context) {
  constexpr std::size_t kShort = std::size_t{64} << 10;  // not worth a scan of the vocabulary
  if (text.size() <= kShort) return {};
  const std::size_t n_min = text.size() / token_bytes_max(vocabulary);
  if (std::cmp_less_equal(n_min, n_context)) return {};
  return std::unexpected(ApiError{
      .message = format_text("This model's maximum context length is {} tokens. However, you "
                             "requested {} tokens or more: the prompt has {} bytes.",
                             n_context, n_min, text.size()),
      .param = param,
      .code = "context_length_exceeded",
      .lengths = ApiError::Lengths{n_min, static_cast<std::size_t>(n_context)}});
}

ApiResult<int> tokens_to_generate(const std::string& param, std::size_t n_prompt,
                                  const GenerationOptions& options, int n_context) {
  const auto n_used = static_cast<std::int64_t>(n_prompt);
  const std::int64_t n_left = n_context - n_used;
  const std::int64_t n_asked = options.may_shorten ? 1 : options.max_tokens.value_or(1);
  if (n_left < n_asked) {
    return std::unexpected(ApiError{
        .message = format_text("This model's maximum context length is {} tokens. However, you "
                               "requested {} tokens ({} in the prompt, {} in the completion).",
                               n_context, n_used + n_asked, n_used, n_asked),
        .param = n_left < 1 ? param : "max_tokens",
        .code = "context_length_exceeded",
        .lengths = ApiError::Lengths{n_prompt, static_cast<std::size_t>(n_context)}});
  }
  const auto n_tokens =
      static_cast<int>(std::min<std::int64_t>(options.max_tokens.value_or(n_context), n_left));
  if (options.sampling.n_tokens_min > n_tokens) {
    return refuse(
        "min_tokens",
        format_text("'min_tokens' is {}, more than the {} tokens that the answer may have",
                    options.sampling.n_tokens_min, n_tokens));
  }
  return n_tokens;
}

GenerateRequest make_request(const GenerationOptions& options, std::vector<Token> prompt,
                             int n_tokens_max, int idx, const Client& client) {
  GenerateRequest request{.prompt = std::move(prompt),
                          .n_tokens_max = n_tokens_max,
                          .sampling = options.sampling,
                          .stops = options.stops,
                          .ignores_end = options.ignores_end,
                          .wants_progress = options.wants_progress && options.streams,
                          .client = client.name,
                          .priority = client.priority,
                          .salt = client.salt};
  if (request.sampling.seed) *request.sampling.seed += static_cast<std::uint32_t>(idx);
  return request;
}

}  // namespace slipstream
