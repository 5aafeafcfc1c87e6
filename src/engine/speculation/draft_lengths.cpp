#include "engine/speculation/draft_lengths.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <ranges>

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
                               const RelativeCost& relative_cost, int n_drafted_max) {
  const std::vector<Candidate> tokens = by_gain(chances);
  const auto n_sequences = static_cast<double>(chances.size());
  const int n_max = std::min(static_cast<int>(tokens.size()), n_drafted_max);
  double gain = 0;
  double best_gain = n_sequences * kGainMin;
  std::vector<int> lengths(chances.size());
  std::vector<int> best = lengths;
  int n_taken = 0;
  for (const int length : StepCosts::kLengths) {
    const int n = std::min(length, n_max);
    for (; n_taken < n; ++n_taken) {
      const Candidate& token = tokens[static_cast<std::size_t>(n_taken)];
      gain += token.gain;
      ++lengths[token.sequence];
    }
    if (n > 0) {
      const double total = gain - n_sequences * std::log(relative_cost(lengths));
      if (total > best_gain) {
        best_gain = total;
        best = lengths;
      }
    }
    if (n == n_max) break;
  }
  return best;
}

std::vector<int> shortened(std::vector<int> lengths, int n) {
  for (int total = std::reduce(lengths.begin(), lengths.end()); total > n; --total) {
    // The last of the longest, so that the first keep theirs.
    --*std::ranges::max_element(lengths | std::views::reverse);
  }
  return lengths;
}

}  // namespace slipstream
