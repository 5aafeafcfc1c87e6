// Drift: how long a greedy continuation stays identical to the one with f16. After the first token
// that differs, the texts diverge, so only the position of that token counts.
//
// Threads: pure functions. Errors: those of go_on() (asker.h).
#pragma once

#include <span>
#include <vector>

#include "bench/quality/asker.h"
#include "bench/quality/divergence_pass.h"

namespace slipstream::quality {

struct DriftOptions {
  int n_prompts = 6;
  int n_prompt_tokens = 192;
  int n_tokens = 128;  // of each continuation
};

// The prompts are pieces of the text, evenly spaced from its beginning to its end.
[[nodiscard]] Result<std::vector<Tokens>> continue_text(Engine& engine, std::span<const Token> text,
                                                        const DriftOptions& options,
                                                        const OnProgress& on_progress);

// The position of the first token that differs; the length if none differs.
[[nodiscard]] int first_difference(std::span<const Token> base, std::span<const Token> other);

// The middle value, or the mean of the two middle values of an even number.
[[nodiscard]] double median(std::vector<int> values);

}  // namespace slipstream::quality
