// Log-probabilities of the model's own distribution: the log-softmax of its logits, before
// penalties, temperature or anything else is applied.
//
// Threads: pure functions.
// Errors:  kCorrupt for logits with NaN or plus infinity, or without a finite one: the model or its
//          weights are broken. Minus infinity is valid: the model rules the token out.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "engine/request.h"

namespace slipstream {

struct TokenLogprob {
  Token token;
  float logprob;
};

struct TokenLogprobs {
  float logprob = 0;                   // of the chosen token, or of the prompt's token
  std::vector<TokenLogprob> top = {};  // the most probable ones, best first; ties: lower ids first
};

// The highest logit, after checking all of them.
[[nodiscard]] Result<float> checked_max(std::span<const float> logits);

// Log-probabilities of the token and of the n_top most probable ones (fewer if there are fewer).
[[nodiscard]] Result<TokenLogprobs> logprobs_of(std::span<const float> logits, Token token,
                                                int n_top);

}  // namespace slipstream
