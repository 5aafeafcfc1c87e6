// SamplingLimits: how large sampling parameters may be.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct SamplingLimits {
  // Larger parameters are refused (sampling_params.h). Penalties keep this many tokens per
  // sequence, and each DRY breaker is searched in the whole vocabulary.
  std::size_t penalty_window_max = std::size_t{1} << 20;
  std::size_t dry_breakers_max = 16;
  std::size_t logit_biases_max = std::size_t{1} << 16;
  std::size_t stop_tokens_max = 64;  // each is compared with every token of the answer
  int top_logprobs_max = 100;
};

inline constexpr SamplingLimits kSamplingLimits{};

}  // namespace slipstream
