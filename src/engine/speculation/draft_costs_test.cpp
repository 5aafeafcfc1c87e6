#include "engine/speculation/draft_costs.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(DraftCosts, AreAShareOfTheStepUntilTheyAreMeasured) {
  DraftCosts costs(0.1);
  EXPECT_NEAR(costs.estimate(1, 3, 2.0), 0.6, 1e-9);
  costs.observe(1, 4, 2.0);
  EXPECT_NEAR(costs.estimate(1, 3, 2.0), 1.5, 1e-9) << "by rounds";
}

TEST(DraftCosts, AreThoseOfTheNearestNumberOfSequences) {
  DraftCosts costs(0.1);
  costs.observe(1, 1, 0.2);
  costs.observe(8, 1, 0.5);
  EXPECT_NEAR(costs.estimate(2, 1, 1), 0.2, 1e-9);
  EXPECT_NEAR(costs.estimate(7, 1, 1), 0.5, 1e-9);
  EXPECT_NEAR(costs.estimate(20, 1, 1), 0.5, 1e-9);
}

TEST(DraftCosts, ASlowRoundIsForgivenSoonerThanAQuickOne) {
  DraftCosts costs(0.1);
  costs.observe(1, 1, 0.1);
  costs.observe(1, 1, 2.0);  // another process had the machine
  EXPECT_LT(costs.estimate(1, 1, 1), 0.3);
  costs.observe(1, 1, 0.1);
  EXPECT_LT(costs.estimate(1, 1, 1), 0.2);
}

TEST(DraftCosts, WhatWasSlowLongAgoIsDoubted) {
  DraftCosts costs(0.1);
  costs.observe(1, 1, 0.8);
  for (int i = 0; i < 3 * DraftCosts::kDoubtedAfter; ++i) costs.count_step();
  EXPECT_LT(costs.estimate(1, 1, 1), 0.2);
  EXPECT_GE(costs.estimate(1, 1, 1), 0.1);
}

TEST(DraftCosts, LearningIsMeasuredByTokens) {
  DraftCosts costs(0.1);
  EXPECT_LT(costs.estimate_learning(1), 0.1) << "less than a round";
  costs.observe_learning(100, 0.5);
  EXPECT_NEAR(costs.estimate_learning(1), 0.005, 1e-9);
}

}  // namespace
}  // namespace slipstream
