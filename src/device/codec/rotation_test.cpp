#include "device/codec/rotation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "device/codec/test_vectors.h"

namespace slipstream::turbo {
namespace {

using testing::ElementsAre;

std::vector<float> gaussian(int dim, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(dim));
  for (float& value : x) value = normal(random);
  return x;
}

TEST(Rotation, BlocksAreThePowersOfTwoLargestFirst) {
  EXPECT_THAT(Rotation(16).blocks(), ElementsAre(16));
  EXPECT_THAT(Rotation(80).blocks(), ElementsAre(64, 16));
  EXPECT_THAT(Rotation(96).blocks(), ElementsAre(64, 32));
  EXPECT_THAT(Rotation(112).blocks(), ElementsAre(64, 32, 16));
  EXPECT_THAT(Rotation(128).blocks(), ElementsAre(128));
  EXPECT_THAT(Rotation(192).blocks(), ElementsAre(128, 64));
  EXPECT_THAT(Rotation(256).blocks(), ElementsAre(256));
  EXPECT_THAT(Rotation(576).blocks(), ElementsAre(512, 64));
}

TEST(Rotation, SupportsMultiplesOfSixteen) {
  for (const int dim : {16, 64, 80, 1024}) EXPECT_TRUE(is_code_head(dim)) << dim;
  for (const int dim : {-16, 0, 8, 24, 100, 1040}) EXPECT_FALSE(is_code_head(dim)) << dim;
  EXPECT_DEATH(Rotation(24), "codes");
}

TEST(Rotation, InverseUndoesForwardAndDotProductsStay) {
  for (int dim = kHeadDimMin; dim <= kHeadDimMax; dim += 16) {
    const Rotation rotation(dim);
    const std::vector<float> x = gaussian(dim, 1);
    const std::vector<float> y = gaussian(dim, 2);
    std::vector<float> x_rotated = x;
    std::vector<float> y_rotated = y;
    rotation.forward(x_rotated);
    rotation.forward(y_rotated);
    EXPECT_NEAR(dot(x_rotated, y_rotated), dot(x, y), 1e-6 * dim);
    EXPECT_NEAR(dot(x_rotated, x_rotated), dot(x, x), 1e-6 * dim);
    rotation.inverse(x_rotated);
    EXPECT_THAT(x_rotated, testing::Pointwise(testing::FloatNear(2e-6F), x));
  }
}

// Every output is a sum over its block with the signs of a Walsh function.
TEST(Rotation, IsSignsThenWalshHadamardOfEachBlock) {
  const Rotation rotation(80);
  const std::vector<float> x = gaussian(80, 3);
  std::vector<float> rotated = x;
  rotation.forward(rotated);
  for (unsigned row = 0; row < 80; ++row) {
    const unsigned start = row < 64 ? 0 : 64;
    const unsigned size = row < 64 ? 64 : 16;
    double sum = 0;
    for (unsigned i = 0; i < size; ++i) {
      const bool minus = std::popcount(i & (row - start)) % 2 != 0;
      sum += static_cast<double>(x[start + i] * rotation.signs()[start + i]) * (minus ? -1 : 1);
    }
    EXPECT_NEAR(static_cast<double>(rotated[row]), sum / std::sqrt(size), 1e-5);
  }
}

// Other signs would make saved caches unreadable.
TEST(Rotation, SignsAreTheSameForever) {
  unsigned first_bits = 0;
  const Rotation rotation(64);
  for (std::size_t i = 0; i < 32; ++i) {
    first_bits = first_bits * 2 + (rotation.signs()[i] < 0 ? 1U : 0U);
  }
  EXPECT_EQ(first_bits, 0xcfcfa6b5U);
  EXPECT_TRUE(std::ranges::equal(rotation.signs(), Rotation(576).signs().first(64)));
}

// Without the signs, a constant vector would be concentrated in one component.
TEST(Rotation, SpreadsConstantsAndOutliers) {
  const Rotation rotation(128);
  std::vector<float> constant(128, 1.0F);
  std::vector<float> outlier(128, 0.0F);
  outlier[77] = 1.0F;
  rotation.forward(constant);
  rotation.forward(outlier);
  const auto largest = [](const std::vector<float>& x) {
    return std::abs(*std::ranges::max_element(x, {}, [](float v) { return std::abs(v); }));
  };
  EXPECT_LT(largest(constant), 3.5F);  // of sqrt(128) = 11.3
  EXPECT_FLOAT_EQ(largest(outlier), 1 / std::sqrt(128.0F));
}

}  // namespace
}  // namespace slipstream::turbo
