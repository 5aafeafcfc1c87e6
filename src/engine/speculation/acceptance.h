// Acceptance: how often the drafts of one request were right so far, by how much of the text before
// them was found again. Right after an edit little is, and a draft is a gamble; further on it is
// almost certain.
//
// It learns from drafts that were not computed, too: what the model says later shows whether they
// would have been right. So a request that stopped using drafts notices for free that they are right
// again.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "engine/speculation/drafter.h"

namespace slipstream {

class Acceptance {
 public:
  // For each token of a draft, the probability that it and all before it are right.
  [[nodiscard]] std::vector<double> chances(const Draft& draft) const;
  // The request went on by `tokens` where the draft was made.
  void observe(const Draft& draft, std::span<const Token> tokens);

 private:
  struct Share {
    double right = 0.5;
    int n = 0;  // observations, up to where their number no longer matters
  };
  // By the number of binary digits of n_matched.
  static constexpr std::size_t kClasses = 8;
  [[nodiscard]] static std::size_t class_of(int n_matched);

  std::array<Share, kClasses> shares_ = {};
};

}  // namespace slipstream
