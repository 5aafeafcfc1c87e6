#include "device/codec/key_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "device/codec/f16.h"
#include "device/codec/test_bases.h"
#include "device/codec/test_vectors.h"

namespace slipstream::turbo {
namespace {

class Fitted : public testing::TestWithParam<std::tuple<int, int>> {};

std::vector<float> without_mean(std::span<const float> key, std::span<const float> mean) {
  std::vector<float> centred(key.size());
  std::ranges::transform(key, mean, centred.begin(), std::minus<>());
  return centred;
}

TEST_P(Fitted, TakesNoMoreBytesThanOneWidth) {
  const auto [bits, head_dim] = GetParam();
  for (const ChannelClasses& classes : fitted_layouts(bits, head_dim)) {
    EXPECT_EQ(TileLayout(Side::kKey, classes).head_dim(), head_dim);
    EXPECT_LE(tile_code_bytes(classes), tile_code_bytes(bits, head_dim));
  }
}

// Steeply falling variances need a few channels of 8 bits, flat ones do not.
TEST(FittedLayout, SuitsTheVariances) {
  EXPECT_EQ(KeyFit(3, 64, test_bases(2, 64, 12)).classes().all[0].bits, 8);
  EXPECT_EQ(KeyFit(3, 64, test_bases(2, 64, 1)).classes().all[0].bits, 4);
}

// A file may hold anything, so directions that are no basis are detected.
TEST(FittedLayout, DirectionsWithoutAnInverseAreOfNoUse) {
  std::vector<HeadBasis> heads = test_bases(2, 64);
  EXPECT_TRUE(KeyFit(4, 64, heads).is_usable());
  std::ranges::fill(heads[1].directions, 0.0F);
  EXPECT_FALSE(KeyFit(4, 64, heads).is_usable());
  heads = test_bases(2, 64);
  heads[0].directions[5] = std::numeric_limits<float>::max();
  heads[0].variances[3] = std::numeric_limits<float>::denorm_min();
  EXPECT_FALSE(KeyFit(4, 64, heads).is_usable());
}

TEST_P(Fitted, ScoresAreKept) {
  const auto [bits, head_dim] = GetParam();
  const auto n = static_cast<std::size_t>(head_dim);
  const std::vector<HeadBasis> heads = test_bases(2, head_dim);
  const KeyFit fit(bits, head_dim, heads);
  TestVectors random(3);
  for (const std::int64_t head : {0, 1}) {
    const std::vector<float> key = random.draw(Kind::kGaussian, head_dim);
    const std::vector<float> query = random.draw(Kind::kGaussian, head_dim);
    const std::vector<float> centred = without_mean(key, fit.mean(head));
    std::vector<float> z(n);
    std::vector<float> turned(n);
    std::vector<float> back(n);
    fit.to_codes(head, centred, z);
    fit.to_queries(head, query, turned);
    fit.from_codes(head, z, back);
    EXPECT_NEAR(dot(turned, z), dot(query, centred), 1e-4 * static_cast<double>(head_dim));
    for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(back[i], centred[i], 1e-3);
  }
}

// A decoded vector that is rounded to f16 and encoded again has the same codes, so a saved cache is
// restored exactly.
TEST_P(Fitted, DecodedVectorsKeepTheirCodes) {
  const auto [bits, head_dim] = GetParam();
  const auto n = static_cast<std::size_t>(head_dim);
  const ChannelClasses classes = fitted_layouts(bits, head_dim).back();
  const std::vector<float> weights(static_cast<std::size_t>(head_dim), 1.0F);
  TestVectors random(4);
  for (const Kind kind : kKinds) {
    std::vector<float> z = random.draw(kind, head_dim);
    for (float& number : z) number *= 30;
    std::vector<std::uint8_t> codes(n);
    const std::uint16_t scale = encode_fitted(classes, weights, z, codes);
    decode_fitted(classes, scale, codes, z);
    for (float& number : z) number = f16_to_float(float_to_f16(number));
    std::vector<std::uint8_t> again(n);
    EXPECT_EQ(encode_fitted(classes, weights, z, again), scale) << name(kind);
    EXPECT_EQ(again, codes) << name(kind);
  }
}

// A key that is far out in one direction is coded more coarsely but not lost. Because channels are
// mixed, it is far out in a whole block.
TEST_P(Fitted, OutliersSetTheScale) {
  const auto [bits, head_dim] = GetParam();
  const std::vector<float> weights(static_cast<std::size_t>(head_dim), 1.0F);
  for (const ChannelClasses& classes : fitted_layouts(bits, head_dim)) {
    std::size_t first = 0;
    for (const ChannelClass& one : classes) {
      const std::size_t end = first + static_cast<std::size_t>(one.n_channels);
      std::vector<float> z(static_cast<std::size_t>(head_dim), 1.0F);
      for (std::size_t i = first; i < end; ++i) z[i] = i % 3 == 0 ? -3000 : 3000;
      std::vector<std::uint8_t> codes(z.size());
      std::vector<float> decoded(z.size());
      decode_fitted(classes, encode_fitted(classes, weights, z, codes), codes, decoded);
      for (std::size_t i = first; i < end; ++i) EXPECT_NEAR(decoded[i] / z[i], 1, 0.3);
      first = end;
    }
  }
}

TEST_P(Fitted, WhateverIsEncodedIsFinite) {
  const auto [bits, head_dim] = GetParam();
  const ChannelClasses classes = fitted_layouts(bits, head_dim).back();
  const std::vector<float> weights(static_cast<std::size_t>(head_dim), 1.0F);
  std::vector<float> z(static_cast<std::size_t>(head_dim));
  z[0] = std::numeric_limits<float>::infinity();
  z[20] = std::numeric_limits<float>::quiet_NaN();
  z.back() = 3e38F;
  std::vector<std::uint8_t> codes(z.size());
  decode_fitted(classes, encode_fitted(classes, weights, z, codes), codes, z);
  for (const float number : z) EXPECT_TRUE(std::isfinite(number));
}

// The purpose of the fit: with the same bits, the error of scores is less than with rotated keys.
TEST_P(Fitted, ErrsLessThanOneWidth) {
  const auto [bits, head_dim] = GetParam();
  const auto n = static_cast<std::size_t>(head_dim);
  const std::vector<HeadBasis> heads = test_bases(1, head_dim);
  const KeyFit fit(bits, head_dim, heads);
  const ChannelClasses& classes = fit.classes();
  const std::span<const float> weights = fit.weights(0);
  const Rotation rotation(head_dim);
  TestHead head(heads[0]);
  double fitted_error = 0;
  double rotated_error = 0;
  for (int i = 0; i < 300; ++i) {
    const std::vector<float> key = without_mean(head.key(), fit.mean(0));
    const std::vector<float> query = head.query();
    std::vector<float> z(n);
    std::vector<std::uint8_t> codes(n);
    fit.to_codes(0, key, z);
    decode_fitted(classes, encode_fitted(classes, weights, z, codes), codes, z);
    std::vector<float> decoded(n);
    fit.from_codes(0, z, decoded);
    fitted_error += std::pow(dot(query, decoded) - dot(query, key), 2);

    std::vector<float> rotated = key;
    rotation.forward(rotated);
    decoded = Encoded(bits, rotated).decoded();
    rotation.inverse(decoded);
    rotated_error += std::pow(dot(query, decoded) - dot(query, key), 2);
  }
  EXPECT_LT(fitted_error, 0.6 * rotated_error);
}

INSTANTIATE_TEST_SUITE_P(All, Fitted,
                         testing::Combine(testing::Values(3, 4),
                                          testing::Values(48, 64, 80, 96, 112, 128, 192, 256)));

}  // namespace
}  // namespace slipstream::turbo
