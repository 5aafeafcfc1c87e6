#include "engine/speculation/acceptance.h"

#include <algorithm>
#include <bit>

namespace slipstream {
namespace {

// The weight of a new observation: as in a mean of all at first, of the last few later.
constexpr int kRemembered = 16;
constexpr int kPrior = 2;  // observations that the initial share counts as

}  // namespace

std::size_t Acceptance::class_of(int n_matched) {
  const auto n = static_cast<unsigned>(std::max(n_matched, 0));
  return std::min(static_cast<std::size_t>(std::bit_width(n)), kClasses - 1);
}

std::vector<double> Acceptance::chances(const Draft& draft) const {
  std::vector<double> chances;
  double chance = 1;
  for (int n_matched = draft.n_matched; chances.size() < draft.tokens.size(); ++n_matched) {
    chance *= shares_[class_of(n_matched)].right;
    chances.push_back(chance);
  }
  return chances;
}

void Acceptance::observe(const Draft& draft, std::span<const Token> tokens) {
  int n_matched = draft.n_matched;
  for (std::size_t i = 0; i < std::min(draft.tokens.size(), tokens.size()); ++i, ++n_matched) {
    const bool is_right = draft.tokens[i] == tokens[i];
    Share& share = shares_[class_of(n_matched)];
    share.n = std::min(share.n + 1, kRemembered);
    share.right += ((is_right ? 1 : 0) - share.right) / (share.n + kPrior);
    if (!is_right) return;
  }
}

}  // namespace slipstream
