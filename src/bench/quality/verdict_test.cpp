#include "bench/quality/verdict.h"

#include <gtest/gtest.h>

#include <limits>

namespace slipstream::quality {
namespace {

DepthFigures at(int depth, double kl_mean, double same_top) {
  DepthFigures figures{.depth = depth};
  figures.divergence.kl_mean = kl_mean;
  figures.divergence.same_top = same_top;
  return figures;
}

Verdict verdict_of(double kl_mean, double same_top) {
  return judge(std::vector{at(512, kl_mean, same_top)})->verdict;
}

// The figures of docs/quality.md for both texts.
TEST(Verdict, OfWhatWasMeasuredOnTheNeedleModel) {
  EXPECT_EQ(verdict_of(0.000054, 0.99535), Verdict::kFine);         // q8_0
  EXPECT_EQ(verdict_of(0.016789, 0.90688), Verdict::kFine);         // q4_0
  EXPECT_EQ(verdict_of(0.006858, 0.94056), Verdict::kFine);         // turbo8v4
  EXPECT_EQ(verdict_of(0.011991, 0.91756), Verdict::kFine);         // turbo4
  EXPECT_EQ(verdict_of(0.037222, 0.88487), Verdict::kVisibleLoss);  // turbo3
  EXPECT_GE(verdict_of(0.172976, 0.75889), Verdict::kVisibleLoss);  // turbo2
  EXPECT_GE(verdict_of(0.205494, 0.68077), Verdict::kVisibleLoss);
}

TEST(Verdict, EitherFigureDecides) {
  EXPECT_EQ(verdict_of(kFineUpTo.kl_mean, kFineUpTo.same_top), Verdict::kFine);
  EXPECT_EQ(verdict_of(kFineUpTo.kl_mean * 1.01, 1), Verdict::kVisibleLoss);
  EXPECT_EQ(verdict_of(0, kFineUpTo.same_top * 0.99), Verdict::kVisibleLoss);
  EXPECT_EQ(verdict_of(kBrokenFrom.kl_mean * 1.01, 1), Verdict::kBroken);
  EXPECT_EQ(verdict_of(0, kBrokenFrom.same_top * 0.99), Verdict::kBroken);
}

TEST(Verdict, AFigureThatIsNoNumberIsBroken) {
  EXPECT_EQ(verdict_of(std::numeric_limits<double>::quiet_NaN(), 1), Verdict::kBroken);
  EXPECT_EQ(verdict_of(0, std::numeric_limits<double>::quiet_NaN()), Verdict::kBroken);
}

TEST(Verdict, RowsThatAreLostAreBroken) {
  DepthFigures figures = at(512, 0.01, 0.95);
  figures.rows = {.n_rows = 4096, .error_mean = 0.01, .n_lost = kLostRun - 1, .first_lost = 112};
  EXPECT_EQ(judge(std::vector{figures})->verdict, Verdict::kFine);
  figures.rows.n_lost = kLostRun;
  const auto judgement = judge(std::vector{figures});
  EXPECT_EQ(judgement->verdict, Verdict::kBroken);
  EXPECT_TRUE(judgement->reason.contains("8 tokens from 112 on")) << judgement->reason;
}

TEST(Verdict, TheWorstDepthDecides) {
  const auto judgement = judge(std::vector{at(512, 0, 1), at(2048, 0.1, 1), at(4096, 0, 1)});
  ASSERT_TRUE(judgement);
  EXPECT_EQ(judgement->verdict, Verdict::kVisibleLoss);
  EXPECT_TRUE(judgement->reason.contains("2048")) << judgement->reason;
  EXPECT_FALSE(judge({}));
}

TEST(Verdict, TokensReadOneAtATimeCountToo) {
  DepthFigures figures = at(2048, 0.001, 0.99);
  figures.decoded = {.n_tokens = 128, .kl_mean = 0.3, .same_top = 0.99};
  const auto judgement = judge(std::vector{figures});
  EXPECT_EQ(judgement->verdict, Verdict::kBroken);
  EXPECT_TRUE(judgement->reason.contains("one at a time")) << judgement->reason;
  figures.decoded.n_tokens = 0;
  EXPECT_EQ(judge(std::vector{figures})->verdict, Verdict::kFine) << "none were";
}

// n needles at each of two depths: f16 finds n_base of them, and the scheme all of these but the
// first n_lost at the second depth.
std::optional<Judgement> with_needles(int n, int n_base, int n_lost, double kl = 0.001) {
  ArmResult base;
  ArmResult found;
  for (const int depth : {512, 4096}) {
    for (int i = 0; i < n; ++i) {
      base.needles.push_back({.depth = depth, .right = i < n_base});
      found.needles.push_back({.depth = depth, .right = depth == 512 || i >= n_lost});
    }
  }
  if (kl > 0) found.divergence = {at(512, kl, 0.99)};
  return judge(found, base);
}

TEST(Verdict, ASchemeThatLosesNeedlesIsNotFine) {
  EXPECT_EQ(with_needles(20, 18, 0)->verdict, Verdict::kFine);
  EXPECT_EQ(with_needles(20, 18, 1)->verdict, Verdict::kFine) << "a tenth may be chance";
  EXPECT_EQ(with_needles(4, 4, 1)->verdict, Verdict::kFine) << "and so may be one";
  const auto some = with_needles(20, 18, 2);
  EXPECT_EQ(some->verdict, Verdict::kVisibleLoss);
  EXPECT_EQ(some->reason, "2 of 18 needles that f16 finds at depth 4096 are lost");
  EXPECT_EQ(with_needles(20, 18, 9)->verdict, Verdict::kVisibleLoss);
  EXPECT_EQ(with_needles(20, 18, 10)->verdict, Verdict::kBroken);
  EXPECT_EQ(with_needles(2, 2, 2)->verdict, Verdict::kVisibleLoss) << "two are too few";
  EXPECT_EQ(with_needles(20, 18, 2, 0.3)->verdict, Verdict::kBroken) << "by its divergence";
}

TEST(Verdict, NeedlesThatF16FindsByChanceDoNotCount) {
  EXPECT_EQ(with_needles(20, 9, 9)->verdict, Verdict::kFine);
  EXPECT_EQ(with_needles(20, 10, 10)->verdict, Verdict::kBroken);
}

TEST(Verdict, WithoutDivergencesNothingIsFine) {
  EXPECT_FALSE(with_needles(20, 18, 1, 0));
  EXPECT_EQ(with_needles(20, 18, 10, 0)->verdict, Verdict::kBroken);
}

TEST(Verdict, ByName) {
  EXPECT_EQ(parse_verdict("broken"), Verdict::kBroken);
  EXPECT_EQ(parse_verdict("visible-loss"), Verdict::kVisibleLoss);
  EXPECT_FALSE(parse_verdict("bad"));
}

}  // namespace
}  // namespace slipstream::quality
