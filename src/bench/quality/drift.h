// Drift: how long a greedy continuation stays word for word what it is with f16. From the first
// token that differs on, two texts go their own ways, so only that place is counted.
//
// Threads: pure functions. Errors: as of go_on() (asker.h).
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

// Prompts are pieces of the text, evenly from its beginning to its end.
[[nodiscard]] Result<std::vector<Tokens>> continue_text(Engine& engine, std::span<const Token> text,
                                                        const DriftOptions& options,
                                                        const OnProgress& on_progress);

// The place of the first token that differs; the length where none does.
[[nodiscard]] int first_difference(std::span<const Token> base, std::span<const Token> other);

// Of an odd number the middle one, of an even number the mean of the two in the middle.
[[nodiscard]] double median(std::vector<int> values);

}  // namespace slipstream::quality
