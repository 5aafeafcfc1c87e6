#include "engine/speculation/draft_lengths.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/speculation/step_costs.h"

namespace slipstream {
namespace {

// A gain of speed below this is within the error of what is measured.
constexpr double kGainMin = 0.03;

// A drafted token, and by which factor (its logarithm) it makes its sequence faster.
struct Candidate {
  std::size_t sequence;
  double gain;
};

// Later tokens of a sequence have lower gains, so that in this order they follow the earlier ones.
std::vector<Candidate> by_gain(std::span<const std::vector<double>> chances) {
  std::vector<Candidate> tokens;
  for (std::size_t i = 0; i < chances.size(); ++i) {
    double n_expected = 1;
    for (const double chance : chances[i]) {
      tokens.push_back({.sequence = i, .gain = std::log1p(chance / n_expected)});
      n_expected += chance;
    }
  }
  std::ranges::stable_sort(tokens, std::greater(), &Candidate::gain);
  return tokens;
}

}  // namespace

std::vector<int> draft_lengths(std::span<const std::vector<double>> chances,
                               const std::function<double(int)>& relative_cost, int n_drafted_max) {
  const std::vector<Candidate> tokens = by_gain(chances);
  const auto n_sequences = static_cast<double>(chances.size());
  const int n_max = std::min(static_cast<int>(tokens.size()), n_drafted_max);
  double gain = 0;
  double best_gain = n_sequences * kGainMin;
  int n_best = 0;
  int n_taken = 0;
  for (const int length : StepCosts::kLengths) {
    const int n = std::min(length, n_max);
    for (; n_taken < n; ++n_taken) gain += tokens[static_cast<std::size_t>(n_taken)].gain;
    if (n > 0) {
      const double total = gain - n_sequences * std::log(relative_cost(n));
      if (total > best_gain) {
        best_gain = total;
        n_best = n;
      }
    }
    if (n == n_max) break;
  }
  std::vector<int> lengths(chances.size());
  for (int i = 0; i < n_best; ++i) ++lengths[tokens[static_cast<std::size_t>(i)].sequence];
  return lengths;
}

}  // namespace slipstream
