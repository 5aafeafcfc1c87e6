#include "engine/speculation/trust.h"

#include <algorithm>

namespace slipstream {
namespace {

// The weight of a new observation: as in a mean of all at first, of the last ones later.
constexpr int kTokensRemembered = 64;
constexpr int kTokensAtFirst = 8;  // observations that the first trust counts as

}  // namespace

std::vector<double> Trust::chances(int n) const {
  std::vector<double> chances;
  double chance = 1;
  for (int i = 0; i < n; ++i) chances.push_back(chance *= right_);
  return chances;
}

void Trust::observe(std::span<const Token> draft, std::span<const Token> tokens) {
  if (draft.empty()) return;
  n_rested_ = 0;
  for (std::size_t i = 0; i < std::min(draft.size(), tokens.size()); ++i) {
    const bool is_right = draft[i] == tokens[i];
    n_observed_ = std::min(n_observed_ + 1, kTokensRemembered);
    right_ += ((is_right ? 1 : 0) - right_) / (n_observed_ + kTokensAtFirst);
    if (!is_right) return;
  }
}

void Trust::rest() {
  if (++n_rested_ < pause_) return;
  n_rested_ = 0;
  pause_ = std::min(pause_ * 2, kPauseMost);
  if (right_ >= kAtFirst) return;  // it rests for another reason
  right_ = kAtFirst;
  n_observed_ = 0;
}

}  // namespace slipstream
