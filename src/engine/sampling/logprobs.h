// Log-probabilities of the model's own distribution: the log-softmax of its logits, before
// penalties, temperature or anything else is applied.
//
// Threads: pure functions.
// Errors:  kCorrupt for logits with NaN or plus infinity, or without any finite one: the model or
// its
//          weights are broken. Minus infinity is fine: a token the model rules out.
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
  float logprob = 0;                   // of the token that was chosen, or that stands in the prompt
  std::vector<TokenLogprob> top = {};  // the most probable ones, best first, lower ids first
};

// The highest logit.
[[nodiscard]] Result<float> checked_max(std::span<const float> logits);

// Of the token, and of the n_top most probable ones (or as many as there are).
[[nodiscard]] Result<TokenLogprobs> logprobs_of(std::span<const float> logits, Token token,
                                                int n_top);

}  // namespace slipstream
