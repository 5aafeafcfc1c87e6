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

TEST(Verdict, ByName) {
  EXPECT_EQ(parse_verdict("broken"), Verdict::kBroken);
  EXPECT_EQ(parse_verdict("visible-loss"), Verdict::kVisibleLoss);
  EXPECT_FALSE(parse_verdict("bad"));
}

}  // namespace
}  // namespace slipstream::quality
