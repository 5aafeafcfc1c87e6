#include "bench/quality/divergence.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/sampling/logprobs.h"

namespace slipstream::quality {
namespace {

// Less probable tokens add nothing to a divergence.
constexpr float kLogProbMin = -16;

// The mean of the added values, and its standard error.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    squares_ += value * value;
    ++n_;
  }
  [[nodiscard]] double mean() const { return sum_ / n_; }
  [[nodiscard]] double mean_square() const { return squares_ / n_; }
  [[nodiscard]] double error() const {
    if (n_ < 2) return 0;
    return std::sqrt(std::max(0.0, mean_square() - mean() * mean()) / (n_ - 1));
  }

 private:
  double sum_ = 0;
  double squares_ = 0;
  double n_ = 0;
};

}  // namespace

Result<TokenDivergence> compare(std::span<const float> logits, const LogProbsView& base,
                                Token next) {
  SLIP_CHECK(logits.size() == base.size(), "rows of different vocabularies");
  SLIP_CHECK(next >= 0 && static_cast<std::size_t>(next) < logits.size(), "no token");
  const Result<float> highest = checked_max(logits);
  if (!highest) return std::unexpected(highest.error());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - *highest);
  const float log_sum = *highest + static_cast<float>(std::log(sum));

  double kl = 0;
  std::size_t top = 0;
  std::size_t top_base = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float log_p_base = base[i];
    if (logits[i] > logits[top]) top = i;
    if (log_p_base > base[top_base]) top_base = i;
    if (log_p_base > kLogProbMin) {
      kl += static_cast<double>(std::exp(log_p_base) * (log_p_base - logits[i] + log_sum));
    }
  }
  const auto right = static_cast<std::size_t>(next);
  return TokenDivergence{.kl = static_cast<float>(kl),
                         .nll = log_sum - logits[right],
                         .nll_base = -base[right],
                         .same_top = top == top_base};
}

double percentile(std::span<const float> ascending, double share) {
  SLIP_CHECK(!ascending.empty(), "a percentile of nothing");
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double weight = place - static_cast<double>(below);
  return (1 - weight) * static_cast<double>(ascending[below]) +
         weight * static_cast<double>(ascending[above]);
}

DivergenceFigures summarize(std::span<const TokenDivergence> tokens) {
  if (tokens.empty()) return {};
  Mean kl;
  Mean same_top;
  Mean delta_p;
  Mean nll;
  Mean nll_base;
  Mean nll_change;
  std::vector<float> ascending;
  ascending.reserve(tokens.size());
  for (const TokenDivergence& token : tokens) {
    kl.add(static_cast<double>(token.kl));
    same_top.add(token.same_top ? 1 : 0);
    delta_p.add(std::exp(-static_cast<double>(token.nll)) -
                std::exp(-static_cast<double>(token.nll_base)));
    nll.add(static_cast<double>(token.nll));
    nll_base.add(static_cast<double>(token.nll_base));
    nll_change.add(static_cast<double>(token.nll) - static_cast<double>(token.nll_base));
    ascending.push_back(token.kl);
  }
  std::ranges::sort(ascending);
  const double ratio = std::exp(nll_change.mean());
  return {.n_tokens = static_cast<int>(tokens.size()),
          .kl_mean = kl.mean(),
          .kl_mean_error = kl.error(),
          .kl_median = percentile(ascending, 0.5),
          .kl_90 = percentile(ascending, 0.9),
          .kl_95 = percentile(ascending, 0.95),
          .kl_99 = percentile(ascending, 0.99),
          .kl_99_9 = percentile(ascending, 0.999),
          .kl_max = static_cast<double>(ascending.back()),
          .same_top = same_top.mean(),
          .same_top_error = same_top.error(),
          .delta_p_mean = delta_p.mean(),
          .delta_p_mean_error = delta_p.error(),
          .delta_p_rms = std::sqrt(delta_p.mean_square()),
          .perplexity = std::exp(nll.mean()),
          .perplexity_base = std::exp(nll_base.mean()),
          .perplexity_ratio = ratio,
          .perplexity_ratio_error = ratio * nll_change.error()};
}

}  // namespace slipstream::quality
