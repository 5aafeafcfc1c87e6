#include "engine/speculation/acceptance.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

Draft draft_of(int n_matched, std::vector<Token> tokens) {
  return {.tokens = std::move(tokens), .n_matched = n_matched};
}

TEST(Acceptance, ChancesOfLaterTokensAreLower) {
  const std::vector<double> chances = Acceptance().chances(draft_of(4, {1, 2, 3}));
  ASSERT_EQ(chances.size(), 3U);
  EXPECT_GT(chances[0], chances[1]);
  EXPECT_GT(chances[1], chances[2]);
}

TEST(Acceptance, LearnsHowOftenDraftsAreRight) {
  Acceptance acceptance;
  for (int i = 0; i < 400; ++i) {
    acceptance.observe(draft_of(4, {1}), std::vector<Token>{i % 4 == 0 ? 2 : 1});
  }
  EXPECT_NEAR(acceptance.chances(draft_of(4, {1})).at(0), 0.75, 0.1);
  for (int i = 0; i < 60; ++i) acceptance.observe(draft_of(4, {1}), std::vector<Token>{2});
  EXPECT_LT(acceptance.chances(draft_of(4, {1})).at(0), 0.05) << "not what once was";
}

TEST(Acceptance, TellsLongMatchesFromShortOnes) {
  Acceptance acceptance;
  for (int i = 0; i < 50; ++i) {
    acceptance.observe(draft_of(3, {1}), std::vector<Token>{2});
    acceptance.observe(draft_of(40, {1}), std::vector<Token>{1});
  }
  EXPECT_LT(acceptance.chances(draft_of(3, {1})).at(0), 0.1);
  EXPECT_GT(acceptance.chances(draft_of(40, {1})).at(0), 0.9);
}

TEST(Acceptance, SaysNothingOfTokensBehindAWrongOne) {
  Acceptance acceptance;
  for (int i = 0; i < 50; ++i) {
    acceptance.observe(draft_of(7, {1, 9, 9}), std::vector<Token>{2, 9, 9});
  }
  EXPECT_EQ(acceptance.chances(draft_of(8, {1})), Acceptance().chances(draft_of(8, {1})));
}

// A step without drafts says what would have been.
TEST(Acceptance, LearnsFromWhatWasNotVerified) {
  Acceptance acceptance;
  for (int i = 0; i < 50; ++i) {
    acceptance.observe(draft_of(4, {1, 2, 3}), std::vector<Token>{1});
  }
  EXPECT_GT(acceptance.chances(draft_of(4, {1})).at(0), 0.9);
  acceptance.observe(draft_of(4, {1, 2, 3}), {});  // nothing came of it
  acceptance.observe({}, std::vector<Token>{1});
}

}  // namespace
}  // namespace slipstream
