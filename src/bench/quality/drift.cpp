#include "bench/quality/drift.h"

#include <algorithm>

#include "base/check.h"
#include "base/format.h"

namespace slipstream::quality {

Result<std::vector<Tokens>> continue_text(Engine& engine, std::span<const Token> text,
                                          const DriftOptions& options,
                                          const OnProgress& on_progress) {
  const auto n_prompt = static_cast<std::size_t>(options.n_prompt_tokens);
  const auto n_prompts = static_cast<std::size_t>(options.n_prompts);
  if (text.size() < n_prompt) {
    return fail(
        Code::kInvalidArgument,
        format_text("the text has {} tokens, and a prompt to continue has {}: give a longer --text",
                    text.size(), n_prompt));
  }
  std::vector<Tokens> continuations;
  for (std::size_t i = 0; i < n_prompts; ++i) {
    const std::size_t start =
        (text.size() - n_prompt) * i / std::max<std::size_t>(1, n_prompts - 1);
    const auto prompt = text.subspan(start, n_prompt);
    Result<Tokens> tokens =
        go_on(engine, Tokens(prompt.begin(), prompt.end()), options.n_tokens, true);
    if (!tokens) return std::unexpected(tokens.error());
    continuations.push_back(std::move(*tokens));
    if (on_progress) on_progress(static_cast<double>(i + 1) / static_cast<double>(n_prompts));
  }
  return continuations;
}

int first_difference(std::span<const Token> base, std::span<const Token> other) {
  const auto [in_base, in_other] = std::ranges::mismatch(base, other);
  return static_cast<int>(in_base - base.begin());
}

double median(std::vector<int> values) {
  SLIP_CHECK(!values.empty(), "a median of nothing");
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) / 2.0;
}

}  // namespace slipstream::quality
