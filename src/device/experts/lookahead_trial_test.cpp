#include "device/experts/lookahead_trial.h"

#include <gtest/gtest.h>

namespace slipstream::turbo {
namespace {

// The number of steps of n_steps that read ahead, if steps with and without it take these times.
int n_ahead(double with, double without, int n_steps) {
  LookaheadTrial trial;
  int n = 0;
  for (int i = 0; i < n_steps; ++i) {
    n += trial.looks_ahead() ? 1 : 0;
    trial.observe(trial.looks_ahead() ? with : without);
  }
  return n;
}

constexpr int kCycle = LookaheadTrial::kSteps * (2 + LookaheadTrial::kRoundsKept);

TEST(LookaheadTrial, KeepsWhatPays) {
  EXPECT_EQ(n_ahead(1, 2, kCycle), kCycle - LookaheadTrial::kSteps);
}

TEST(LookaheadTrial, DropsWhatDoesNot) { EXPECT_EQ(n_ahead(2, 1, kCycle), LookaheadTrial::kSteps); }

TEST(LookaheadTrial, TriesAgain) {
  EXPECT_EQ(n_ahead(2, 1, 3 * kCycle), 3 * LookaheadTrial::kSteps);
}

}  // namespace
}  // namespace slipstream::turbo
