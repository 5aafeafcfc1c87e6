// Trust: how often the draft model's tokens were right so far, for one request or for all.
//
// Nothing is learned while the draft model is not asked, which would be for ever once it was wrong
// too often. So after a pause it is trusted again as at first (rest()); each time after a longer one.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <span>
#include <vector>

#include "engine/request.h"

namespace slipstream {

class Trust {
 public:
  // More than most draft models deserve: too much costs a few steps, too little a chance.
  static constexpr double kAtFirst = 0.8;
  static constexpr int kPause = 512;       // steps
  static constexpr int kPauseMost = 8192;  // likewise

  Trust() = default;
  // Of a request of which nothing is known yet: as of others.
  explicit Trust(double right) : right_(right) {}

  // The probability that a token is right if those before it are.
  [[nodiscard]] double right() const { return right_; }
  // For each of n tokens, that it and all before it are.
  [[nodiscard]] std::vector<double> chances(int n) const;
  // The request went on by `tokens` where the draft was made.
  void observe(std::span<const Token> draft, std::span<const Token> tokens);
  // A step in which the draft model was not asked.
  void rest();

 private:
  double right_ = kAtFirst;
  int n_observed_ = 0;  // up to where their number no longer matters
  int n_rested_ = 0;
  int pause_ = kPause;
};

}  // namespace slipstream
