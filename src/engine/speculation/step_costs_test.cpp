#include "engine/speculation/step_costs.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

constexpr StepCosts::Kind kOne{.n_sequences = 1, .n_context = 100};

TEST(StepCosts, WantsAStepWithoutDraftsFirstAndNowAndThen) {
  StepCosts costs;
  EXPECT_TRUE(costs.wants_plain(kOne));
  costs.observe(kOne, 0, 0.1);
  EXPECT_FALSE(costs.wants_plain(kOne));
  int n_plain = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool is_plain = costs.wants_plain(kOne);
    n_plain += is_plain ? 1 : 0;
    costs.observe(kOne, is_plain ? 0 : 4, is_plain ? 0.1 : 0.2);
  }
  EXPECT_EQ(n_plain, 1000 / (StepCosts::kDoubtedAfter + 1));
}

TEST(StepCosts, ComparesWithAStepWithoutDrafts) {
  StepCosts costs;
  for (int i = 0; i < 20; ++i) {
    costs.observe(kOne, 0, 0.1);
    costs.observe(kOne, 4, 0.15);
  }
  EXPECT_NEAR(costs.relative(kOne, 4), 1.5, 1e-9);
  EXPECT_NEAR(costs.relative(kOne, 0), 1, 1e-9);
}

TEST(StepCosts, GuessesWhatWasNotMeasuredWithinWhatWas) {
  StepCosts costs;
  costs.observe(kOne, 0, 0.1);
  EXPECT_NEAR(costs.relative(kOne, 1), 1.1, 1e-9);
  for (int i = 0; i < 2; ++i) costs.observe(kOne, 1, 0.15);
  EXPECT_GT(costs.relative(kOne, 2), 1.5) << "no less than a shorter draft";
  EXPECT_LT(costs.relative(kOne, 2), 1.7);
  costs.observe(kOne, 3, 0.155);
  EXPECT_NEAR(costs.relative(kOne, 2), 1.55, 1e-9) << "no more than a longer one";
}

TEST(StepCosts, TriesOneLengthAfterTheOther) {
  StepCosts costs;
  costs.observe(kOne, 0, 0.1);
  EXPECT_EQ(costs.turn(kOne, 0), 0);
  EXPECT_EQ(costs.turn(kOne, 15), 1);
  EXPECT_FALSE(costs.is_known(kOne, 1));
  costs.observe(kOne, 1, 0.11);
  EXPECT_TRUE(costs.is_known(kOne, 1));
  EXPECT_EQ(costs.turn(kOne, 1), 1);
  EXPECT_EQ(costs.turn(kOne, 15), 2);
  for (const int n : {2, 3, 4, 6}) costs.observe(kOne, n, 0.11);
  EXPECT_EQ(costs.turn(kOne, 7), 7) << "of the same kind as 8";
  EXPECT_EQ(costs.turn(kOne, 15), 8);
}

TEST(StepCosts, WhatWasTriedLongAgoMayBeTriedAtOnce) {
  StepCosts costs;
  for (const int n : {0, 1, 2, 3, 4}) costs.observe(kOne, n, 0.1);
  for (int i = 0; i <= StepCosts::kDoubtedAfter; ++i) costs.observe(kOne, 0, 0.1);
  EXPECT_FALSE(costs.is_known(kOne, 4));
  EXPECT_EQ(costs.turn(kOne, 4), 4);
  EXPECT_EQ(costs.turn(kOne, 15), 4) << "before a longer one, it is measured again";
}

TEST(StepCosts, OtherNumbersOfSequencesAndDepthsAreOtherKinds) {
  StepCosts costs;
  costs.observe(kOne, 0, 0.1);
  EXPECT_FALSE(costs.wants_plain({.n_sequences = 1, .n_context = 200}));
  EXPECT_TRUE(costs.wants_plain({.n_sequences = 2, .n_context = 100}));
  EXPECT_TRUE(costs.wants_plain({.n_sequences = 1, .n_context = 100'000}));
}

// A slow step is doubted after a pause, which grows each time.
TEST(StepCosts, TriesAgainAfterLongerAndLongerPauses) {
  StepCosts costs;
  int n_tried = 0;
  constexpr int kSteps = 20'000;
  for (int i = 0; i < kSteps; ++i) {
    const bool tries = !costs.wants_plain(kOne) && costs.relative(kOne, 1) < 1.3;
    n_tried += tries ? 1 : 0;
    costs.observe(kOne, tries ? 1 : 0, tries ? 0.2 : 0.1);
  }
  EXPECT_GE(n_tried, 6);
  EXPECT_LE(n_tried, 12);
}

TEST(StepCosts, ASlowStepIsForgivenSoonerThanAQuickOne) {
  StepCosts costs;
  costs.observe(kOne, 0, 0.1);
  costs.observe(kOne, 4, 0.12);
  for (int i = 0; i < 2; ++i) costs.observe(kOne, 4, 0.5);  // another process had the machine
  EXPECT_LT(costs.relative(kOne, 4), 1.7);
  costs.observe(kOne, 4, 0.12);
  EXPECT_LT(costs.relative(kOne, 4), 1.5);
}

// Of lengths that were never measured, that were, and of steps without drafts.
TEST(StepCosts, ASurpriseCountsOnlyIfItIsMeasuredTwice) {
  StepCosts costs;
  costs.observe(kOne, 0, 0.1);
  costs.observe(kOne, 1, 0.4);
  EXPECT_FALSE(costs.is_known(kOne, 1)) << "it is tried again at once";
  EXPECT_NEAR(costs.relative(kOne, 1), 1.1, 1e-9) << "and thought to be worth it";
  costs.observe(kOne, 1, 0.12);
  EXPECT_NEAR(costs.relative(kOne, 1), 1.2, 1e-9);
  costs.observe(kOne, 1, 0.5);
  EXPECT_NEAR(costs.relative(kOne, 1), 1.2, 1e-9);
  costs.observe(kOne, 2, 0.4);
  costs.observe(kOne, 2, 0.3);
  EXPECT_NEAR(costs.relative(kOne, 2), 3, 1e-9) << "the shorter of two";
  costs.observe(kOne, 0, 0.4);
  EXPECT_NEAR(costs.plain_seconds(kOne), 0.1, 1e-9);
}

TEST(StepCosts, WhatBecomesSlowForLongIsBelieved) {
  StepCosts costs;
  costs.observe(kOne, 0, 0.1);
  for (int i = 0; i < 60; ++i) costs.observe(kOne, 1, i < 10 ? 0.11 : 0.3);
  EXPECT_GT(costs.relative(kOne, 1), 2.5);
}

TEST(StepCosts, AFirstStepThatWasSlowIsDoubtedWhenALongerOneIsQuick) {
  StepCosts costs;
  costs.observe(kOne, 0, 0.3);
  costs.observe(kOne, 1, 0.11);
  EXPECT_TRUE(costs.wants_plain(kOne));
  costs.observe(kOne, 0, 0.1);
  EXPECT_FALSE(costs.wants_plain(kOne));
  EXPECT_NEAR(costs.relative(kOne, 1), 1.1, 1e-9);
  // Some machines are quicker with more rows: that is seen once.
  for (int i = 0; i < 20; ++i) {
    costs.observe(kOne, 2, 0.05);
    EXPECT_FALSE(costs.wants_plain(kOne));
  }
}

}  // namespace
}  // namespace slipstream
