#include "engine/sampling/logprobs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/check.h"

namespace slipstream {
namespace {

// The best n, with a heap that has the worst of them on top.
std::vector<TokenLogprob> best(std::span<const float> logits, std::size_t n) {
  const auto is_better = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
  };
  std::vector<TokenLogprob> top;
  top.reserve(n);
  for (std::size_t i = 0; n > 0 && i < logits.size(); ++i) {
    const TokenLogprob candidate{static_cast<Token>(i), logits[i]};
    if (top.size() == n) {
      if (!is_better(candidate, top.front())) continue;
      std::ranges::pop_heap(top, is_better);
      top.pop_back();
    }
    top.push_back(candidate);
    std::ranges::push_heap(top, is_better);
  }
  std::ranges::sort_heap(top, is_better);
  return top;
}

}  // namespace

Result<float> checked_max(std::span<const float> logits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Compilers turn independent lanes into vector code. This runs for every token of every sequence.
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> maxima;
  std::array<std::uint32_t, kLanes> nans = {};
  maxima.fill(-kInfinity);
  const auto take = [&](std::size_t lane, float logit) {
    maxima[lane] = maxima[lane] < logit ? logit : maxima[lane];
    nans[lane] |= static_cast<std::uint32_t>(logit != logit);
  };
  std::size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) take(lane, logits[i + lane]);
  }
  for (; i < logits.size(); ++i) take(0, logits[i]);
  const float max = *std::ranges::max_element(maxima);
  if (std::ranges::contains(nans, 1U)) {
    return fail(Code::kCorrupt, "the model computed scores that are not numbers");
  }
  if (max == kInfinity) return fail(Code::kCorrupt, "the model computed an infinite score");
  if (max == -kInfinity) return fail(Code::kCorrupt, "the model ruled out every token");
  return max;
}

Result<TokenLogprobs> logprobs_of(std::span<const float> logits, Token token, int n_top) {
  SLIP_CHECK(token >= 0 && std::cmp_less(token, logits.size()), "a token without a logit");
  SLIP_CHECK(n_top >= 0, "a negative number of log-probabilities");
  const Result<float> max = checked_max(logits);
  if (!max) return std::unexpected(max.error());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - *max);
  // In this order, small differences between large logits are kept.
  const auto logprob = [max = double{*max}, log_sum = std::log(sum)](float logit) {
    return static_cast<float>((logit - max) - log_sum);
  };

  TokenLogprobs result{.logprob = logprob(logits[static_cast<std::size_t>(token)])};
  result.top = best(logits, std::min(static_cast<std::size_t>(n_top), logits.size()));
  for (TokenLogprob& entry : result.top) entry.logprob = logprob(entry.logprob);
  return result;
}

}  // namespace slipstream
