// SamplingLimits: how large sampling parameters may be.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct SamplingLimits {
  // Sampling parameters past these are refused (sampling_params.h). Penalties keep so many tokens
  // per sequence, and each breaker of DRY is looked for in the whole vocabulary.
  std::size_t penalty_window_max = std::size_t{1} << 20;
  std::size_t dry_breakers_max = 16;
  std::size_t logit_biases_max = std::size_t{1} << 16;
  int top_logprobs_max = 100;
};

inline constexpr SamplingLimits kSamplingLimits{};

}  // namespace slipstream
