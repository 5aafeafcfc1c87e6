#include "device/codec/codebook.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numbers>

#include "device/codec/lloyd_max.h"

namespace slipstream::turbo {
namespace {

class CodebookBits : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Each, CodebookBits, testing::Values(2, 3, 4));

// The mean square error of `levels` for a Gaussian of variance 1, integrated by the midpoint rule.
double mse(std::span<const float> levels) {
  double sum = 0;
  constexpr double kStep = 1e-4;
  for (int i = -80000; i < 80000; ++i) {
    const double x = (i + 0.5) * kStep;
    double best = 1e9;
    for (const float level : levels)
      best = std::min(best, std::abs(x - static_cast<double>(level)));
    sum += best * best * std::exp(-x * x / 2) * kStep;
  }
  return sum / std::sqrt(2 * std::numbers::pi);
}

TEST(LloydMax, HasTheMeanSquareErrorsOfTheLiterature) {
  EXPECT_NEAR(lloyd_max(2).mse, 1 - 2 / std::numbers::pi, 1e-12);
  EXPECT_NEAR(lloyd_max(4).mse, 0.1175, 5e-5);
  EXPECT_NEAR(lloyd_max(8).mse, 0.0345, 5e-5);
  EXPECT_NEAR(lloyd_max(16).mse, 0.0095, 5e-5);
}

TEST_P(CodebookBits, IsTheOneThatLloydMaxComputes) {
  const int bits = GetParam();
  const LloydMax computed = lloyd_max(1 << bits);
  const std::span<const float> committed = ideal_centroids(bits);
  ASSERT_EQ(committed.size(), computed.centroids.size());
  for (std::size_t k = 0; k < committed.size(); ++k) {
    EXPECT_NEAR(static_cast<double>(committed[k]), computed.centroids[k], 1e-6);
  }
  EXPECT_NEAR(mse(committed), computed.mse, 1e-6);
  // Committed with six digits. Fitted levels are divided by 1 - this error.
  EXPECT_NEAR(static_cast<double>(level_error(bits)), computed.mse, 1e-6);
}

TEST_P(CodebookBits, AscendsAndIsSymmetric) {
  for (const std::span<const float> table :
       {ideal_centroids(GetParam()), centroids(GetParam()), thresholds(GetParam())}) {
    EXPECT_TRUE(std::ranges::is_sorted(table, std::ranges::less_equal()));
    for (std::size_t k = 0; k < table.size(); ++k) {
      EXPECT_EQ(table[k], -table[table.size() - 1 - k]);
    }
  }
}

TEST_P(CodebookBits, LevelsInUseAreInt8TimesStepAndThresholdsTheirMidpoints) {
  const int bits = GetParam();
  const std::span<const std::int8_t> i8 = centroids_i8(bits);
  EXPECT_EQ(i8.size(), std::size_t{1} << static_cast<unsigned>(bits));
  EXPECT_EQ(i8.back(), 127);
  EXPECT_EQ(thresholds(bits).size(), i8.size() - 1);
  for (std::size_t k = 0; k < i8.size(); ++k) {
    const float ideal_i8 = ideal_centroids(bits)[k] / i8_step(bits);
    EXPECT_EQ(static_cast<float>(i8[k]), std::round(ideal_i8));
    EXPECT_EQ(centroids(bits)[k], static_cast<float>(i8[k]) * i8_step(bits));
    if (k > 0) {
      EXPECT_FLOAT_EQ(thresholds(bits)[k - 1], (centroids(bits)[k - 1] + centroids(bits)[k]) / 2);
    }
  }
}

TEST_P(CodebookBits, RoundingToInt8CostsLessThanOnePercent) {
  const int bits = GetParam();
  const double ratio = mse(centroids(bits)) / mse(ideal_centroids(bits));
  std::printf("%d bits: int8 levels have %.5f of the ideal error\n", bits, ratio);
  EXPECT_GE(ratio, 1.0);
  EXPECT_LT(ratio, 1.01);
}

TEST(CodebookDeathTest, OtherBitsAreABug) {
  EXPECT_DEATH(centroids(5), "codebooks of 2, 3 and 4 bits");
}

}  // namespace
}  // namespace slipstream::turbo
