#include "engine/speculation/trust.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

const std::vector<Token> kText = {1, 2, 3, 4};

TEST(Trust, ComesNearWhatIsRight) {
  Trust trust;
  for (int i = 0; i < 400; ++i) trust.observe(std::vector<Token>{1, i % 2 == 0 ? 2 : 9}, kText);
  // Of each four tokens that were looked at one is wrong.
  EXPECT_NEAR(trust.right(), 0.75, 0.05);
}

TEST(Trust, LooksAtNothingBehindAWrongToken) {
  Trust one;
  Trust other;
  one.observe(std::vector<Token>{9}, kText);
  other.observe(std::vector<Token>{9, 9, 9, 9}, kText);
  EXPECT_EQ(one.right(), other.right());
  EXPECT_LT(one.right(), Trust::kAtFirst);
}

TEST(Trust, ATokenIsRightOnlyIfThoseBeforeItAre) {
  const std::vector<double> chances = Trust(0.5).chances(3);
  EXPECT_EQ(chances, (std::vector<double>{0.5, 0.25, 0.125}));
}

TEST(Trust, ReturnsAfterLongerAndLongerPauses) {
  Trust trust;
  int n_asked = 0;
  constexpr int kSteps = 40'000;
  for (int i = 0; i < kSteps; ++i) {
    const bool is_asked = trust.right() > 0.6;
    if (is_asked) {
      trust.observe(std::vector<Token>{9}, kText);
      ++n_asked;
    } else {
      trust.rest();
    }
  }
  EXPECT_GE(n_asked, 15) << "it is tried again";
  EXPECT_LE(n_asked, 60) << "but not often";
}

TEST(Trust, APauseTakesNothingFromWhoIsTrusted) {
  Trust trust;
  for (int i = 0; i < 50; ++i) trust.observe(kText, kText);
  const double right = trust.right();
  EXPECT_GT(right, 0.95);
  for (int i = 0; i < Trust::kPause; ++i) trust.rest();
  EXPECT_EQ(trust.right(), right);
}

}  // namespace
}  // namespace slipstream
