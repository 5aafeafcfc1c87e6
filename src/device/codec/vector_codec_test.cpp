// The codec's contract in edge cases. Distortion and stability have their own tests:
// distortion_test, stability_test.
#include "device/codec/vector_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "device/codec/codebook.h"
#include "device/codec/f16.h"
#include "device/codec/test_vectors.h"

namespace slipstream::turbo {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

double length(std::span<const float> x) { return std::sqrt(dot(x, x)); }

class VectorCodecBits : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Each, VectorCodecBits, testing::Values(2, 3, 4, 8));

TEST(VectorCodec, LevelsAreScaledIntegers) {
  const std::uint16_t half = float_to_f16(0.5F);
  const std::array<std::uint8_t, 4> codes = {0, 1, 2, 3};
  std::array<float, 4> x{};
  decode(2, half, codes, x);
  EXPECT_THAT(x, ElementsAre(-63.5F, -19.0F, 19.0F, 63.5F));
  decode(8, half, std::array<std::uint8_t, 4>{1, 128, 129, 255}, x);
  EXPECT_THAT(x, ElementsAre(-63.5F, 0.0F, 0.5F, 63.5F));
}

TEST_P(VectorCodecBits, KeepsTheLengthAndTheSigns) {
  TestVectors vectors(1);
  const std::vector<float> x = vectors.draw(Kind::kGaussian, 128);
  const std::vector<float> back = Encoded(GetParam(), x).decoded();
  EXPECT_NEAR(length(back) / length(x), 1, 0x1p-9);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::abs(x[i]) > 0.05F) {
      EXPECT_EQ(std::signbit(back[i]), std::signbit(x[i]));
    }
  }
}

TEST_P(VectorCodecBits, EightBitsAreWithinHalfAStepOthersAtTheNearestLevel) {
  const int bits = GetParam();
  TestVectors vectors(2);
  for (int n = 0; n < 50; ++n) {
    const std::vector<float> x = vectors.draw(Kind::kGaussian, 128);
    const Encoded encoded(bits, x);
    const float scale = f16_to_float(encoded.scale);
    const std::vector<float> back = encoded.decoded();
    float peak = 0;
    for (const float value : x) peak = std::max(peak, std::abs(value));
    const auto to_variance_1 = static_cast<float>(std::sqrt(128.0) / length(x));
    const float gain =
        bits == 8 ? 0 : std::min(to_variance_1, peak_cut_max(bits) * centroids(bits).back() / peak);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (bits == 8) {
        // Half a step, and what a scale of 9 bits cuts off at the peak.
        EXPECT_LE(std::abs(back[i] - x[i]), scale * 0.501F);
        continue;
      }
      const float chosen = std::abs(centroids(bits)[encoded.codes[i]] - x[i] * gain);
      for (const float level : centroids(bits)) {
        EXPECT_LE(chosen, std::abs(level - x[i] * gain) + 1e-5F);
      }
    }
  }
}

TEST_P(VectorCodecBits, ZeroIsScaleZeroAndMiddleCodes) {
  const Encoded zero(GetParam(), std::vector<float>(64, 0.0F));
  EXPECT_EQ(zero.scale, 0);
  EXPECT_THAT(zero.codes, Each(middle_code(GetParam())));
  EXPECT_THAT(zero.decoded(), Each(0.0F));
  // Too small for any scale, down to the smallest float.
  EXPECT_EQ(Encoded(GetParam(), std::vector<float>(64, -1e-8F)), zero);
  EXPECT_EQ(Encoded(GetParam(), std::vector<float>(64, -1e-45F)), zero);
}

TEST_P(VectorCodecBits, WhatIsNotFiniteCountsAsZero) {
  const int bits = GetParam();
  TestVectors vectors(3);
  std::vector<float> x = vectors.draw(Kind::kGaussian, 64);
  x[3] = x[40] = x[63] = 0;
  const Encoded clean(bits, x);
  x[3] = kNan;
  x[40] = kInfinity;
  x[63] = -kInfinity;
  EXPECT_EQ(Encoded(bits, x), clean);
  EXPECT_EQ(Encoded(bits, std::vector<float>(64, kNan)),
            Encoded(bits, std::vector<float>(64, 0.0F)));
}

TEST_P(VectorCodecBits, HugeValuesSaturateTheScale) {
  const int bits = GetParam();
  for (const float huge : {1e9F, std::numeric_limits<float>::max()}) {
    std::vector<float> x(64, huge);
    x[5] = -huge;
    const Encoded encoded(bits, x);
    EXPECT_EQ(f16_to_float(encoded.scale), kScaleMax);
    const std::vector<float> back = encoded.decoded();
    EXPECT_LT(back[5], 0);
    EXPECT_GT(back[6], 0);
    EXPECT_EQ(Encoded(bits, back), encoded);
  }
}

// Down to the smallest subnormal scale, the error grows only by the rounding of the scale itself.
TEST_P(VectorCodecBits, SubnormalScalesWork) {
  const int bits = GetParam();
  TestVectors vectors(4);
  const std::vector<float> x = vectors.draw(Kind::kGaussian, 128);
  const float scale = f16_to_float(Encoded(bits, x).scale);
  for (const int quanta : {1, 2, 5, 40, 300, 700, 1000}) {
    const float factor = static_cast<float>(quanta) * 0x1p-24F / scale;
    std::vector<float> small = x;
    for (float& value : small) value *= factor;
    const Encoded encoded(bits, small);
    EXPECT_NEAR(encoded.scale, quanta, 1 + quanta / 256.0);
    const std::vector<float> back = encoded.decoded();
    EXPECT_EQ(Encoded(bits, back), encoded);
    EXPECT_NEAR(length(back) / length(small), 1, 0.01 + 0.5 / quanta);
  }
}

TEST_P(VectorCodecBits, AnyBytesDecode) {
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);
  const std::vector<float> x = Encoded(GetParam(), 0x3c00, codes).decoded();
  EXPECT_THAT(x, Each(testing::AllOf(testing::Ge(-128.0F), testing::Le(127.0F))));
  EXPECT_TRUE(std::isinf(Encoded(GetParam(), kF16Infinity, {255}).decoded()[0]));
}

TEST(VectorCodecDeathTest, WrongBitsAndSizesAreBugs) {
  std::vector<float> x(16);
  std::vector<std::uint8_t> codes(17);
  EXPECT_DEATH(encode(5, x, std::span(codes).first(16)), "2, 3, 4 or 8 bits");
  EXPECT_DEATH(encode(4, x, codes), "one code per component");
}

}  // namespace
}  // namespace slipstream::turbo
