// Divergence: how far a model with a compressed KV cache is from the same model with f16, per token
// and as figures for a whole text. All are defined as in llama-perplexity --kl-divergence, so that
// the two can be compared.
//
//   KL divergence   sum of p_base * (log p_base - log p), over tokens with log p_base > -16
//   top-1           how often the most probable token is the same
//   delta p         change of the probability of the token that really follows
//   perplexity      exp of the mean of -log p of the token that really follows
//
// Threads: pure functions. Errors: compare(): kCorrupt for non-finite logits.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "bench/quality/log_probs.h"
#include "engine/request.h"

namespace slipstream::quality {

struct TokenDivergence {
  float kl = 0;
  float nll = 0;       // -log p of the token that follows
  float nll_base = 0;  // the same with f16
  bool same_top = false;
};

// `next` is the token that follows in the text.
[[nodiscard]] Result<TokenDivergence> compare(std::span<const float> logits,
                                              const LogProbsView& base, Token next);

// Each error is the standard error of the mean before it. Probabilities range from 0 to 1.
struct DivergenceFigures {
  int n_tokens = 0;
  double kl_mean = 0;
  double kl_mean_error = 0;
  double kl_median = 0;
  double kl_90 = 0;  // percentiles
  double kl_95 = 0;
  double kl_99 = 0;
  double kl_99_9 = 0;
  double kl_max = 0;
  double same_top = 0;  // a share
  double same_top_error = 0;
  double delta_p_mean = 0;
  double delta_p_mean_error = 0;
  double delta_p_rms = 0;
  double perplexity = 0;
  double perplexity_base = 0;
  double perplexity_ratio = 0;
  double perplexity_ratio_error = 0;
};

// All figures are zero if there are no tokens.
[[nodiscard]] DivergenceFigures summarize(std::span<const TokenDivergence> tokens);

// Interpolates between the two nearest of the ascending values; `share` ranges from 0 to 1.
[[nodiscard]] double percentile(std::span<const float> ascending, double share);

}  // namespace slipstream::quality
