#include "device/kv_buffer/key_signs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "device/codec/f16.h"
#include "device/codec/rotation.h"
#include "device/codec/test_bases.h"
#include "device/kv_buffer/compressed_cache.h"

namespace slipstream::turbo {
namespace {

std::vector<float> gauss_vector(std::mt19937& random, int n) {
  std::normal_distribution<float> gauss;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& value : x) value = gauss(random);
  return x;
}

// The key that signs and scale stand for.
std::vector<float> key_at(const KeySigns& signs, int head_dim, std::int64_t stream,
                          std::int64_t head, std::int64_t cell) {
  const std::int64_t chunk = cell / kChunkTokens;
  const auto in_chunk = static_cast<std::size_t>(cell % kChunkTokens);
  const float scale = from_sign_scale(signs.scales(stream, head, chunk)[in_chunk]);
  std::vector<float> key(static_cast<std::size_t>(head_dim));
  for (std::size_t c = 0; c < key.size(); ++c) {
    const std::uint8_t byte =
        signs.signs(stream, head, chunk)[c / 8 * signs.plane_bytes() + in_chunk];
    key[c] = (byte >> (c % 8) & 1U) != 0 ? scale : -scale;
  }
  return key;
}

TEST(KeySigns, HaveTheSignsAndTheProductOfTheKey) {
  std::mt19937 random(1);
  for (const int head_dim : {16, 80, 128}) {
    KeySigns signs =
        KeySigns::create({.head_dim = head_dim, .n_heads = 2, .n_cells = 100, .n_streams = 2})
            .value();
    const std::vector<float> x = gauss_vector(random, head_dim);
    signs.write(100 + 71, 1, x);
    const std::vector<float> key = key_at(signs, head_dim, 1, 1, 71);
    float product = 0;
    float squares = 0;
    for (std::size_t c = 0; c < x.size(); ++c) {
      EXPECT_EQ(key[c] > 0, x[c] >= 0) << c;
      product += key[c] * x[c];
      squares += x[c] * x[c];
    }
    EXPECT_NEAR(product, squares, squares / 17);
    EXPECT_EQ(key_at(signs, head_dim, 1, 1, 70)[0], 0);
    EXPECT_EQ(key_at(signs, head_dim, 1, 0, 71)[0], 0);
    signs.copy_stream(1, 0);
    EXPECT_EQ(key_at(signs, head_dim, 0, 1, 71), key);
    signs.clear();
    EXPECT_EQ(key_at(signs, head_dim, 0, 1, 71)[0], 0);
  }
}

// A byte is as near to a scale as three bits of mantissa can be.
TEST(KeySigns, ScalesAreRoundedToABit) {
  for (float scale = 1e-4F; scale < 6e4F; scale *= 1.01F) {
    EXPECT_NEAR(from_sign_scale(sign_scale(scale)), scale, scale / 17 + scale / 2048) << scale;
  }
  EXPECT_EQ(from_sign_scale(sign_scale(0)), 0);
  EXPECT_EQ(from_sign_scale(sign_scale(65504)), 61440);  // the largest, not infinity
  EXPECT_EQ(from_sign_scale(sign_scale(1)), 1);
}

TEST(KeySigns, WhatIsNotFiniteCountsAsNothing) {
  KeySigns signs =
      KeySigns::create({.head_dim = 16, .n_heads = 1, .n_cells = 16, .n_streams = 1}).value();
  std::vector<float> x(16, 1.0F);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[4] = std::numeric_limits<float>::infinity();
  signs.write(5, 0, x);
  EXPECT_EQ(std::abs(key_at(signs, 16, 0, 0, 5)[0]), 1.0F);
}

// A cache that is restored from packed rows has the signs that it had when they were written.
class RestoredSigns : public testing::TestWithParam<int> {};

TEST_P(RestoredSigns, AreThoseThatWereWritten) {
  constexpr int kHeadDim = 128;
  const int bits = GetParam();
  CacheShape shape{.side = Side::kKey,
                   .bits = bits,
                   .head_dim = kHeadDim,
                   .n_heads = 2,
                   .n_cells = 80,
                   .n_streams = 1,
                   .attend = 512};
  CompressedCache written = CompressedCache::create(shape).value();
  CompressedCache restored = CompressedCache::create(shape).value();
  written.close_centre();
  restored.close_centre();
  std::mt19937 random(2);
  std::vector<std::byte> packed(written.packed_row_bytes());
  for (std::int64_t row = 0; row < 80; ++row) {
    for (std::int64_t head = 0; head < 2; ++head) {
      written.write(row, head, gauss_vector(random, kHeadDim));
    }
    written.pack(row, packed);
    ASSERT_TRUE(restored.unpack(row, packed));
    for (std::int64_t head = 0; head < 2; ++head) {
      const std::vector<float> before = key_at(*written.signs(), kHeadDim, 0, head, row);
      const std::vector<float> after = key_at(*restored.signs(), kHeadDim, 0, head, row);
      for (std::size_t c = 0; c < before.size(); ++c) {
        // Codes of 8 bits round the smallest numbers to 0.
        if (bits == 8) continue;
        ASSERT_EQ(before[c] > 0, after[c] > 0) << "row " << row << " channel " << c;
      }
      // Codes move a scale by up to 15 %, and rounding both by one step more.
      const float step = std::abs(before[0]) / 8;
      EXPECT_NEAR(std::abs(after[0]), std::abs(before[0]), 0.15F * std::abs(before[0]) + step);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Bits, RestoredSigns, testing::Values(2, 3, 4, 8));

TEST(KeySigns, OnlyKeysWithALimitHaveThem) {
  CacheShape shape{
      .side = Side::kKey, .bits = 4, .head_dim = 64, .n_heads = 1, .n_cells = 64, .n_streams = 1};
  EXPECT_EQ(CompressedCache::create(shape)->signs(), nullptr);
  const std::size_t without = CompressedCache::n_bytes(shape);
  shape.attend = 512;
  EXPECT_NE(CompressedCache::create(shape)->signs(), nullptr);
  EXPECT_EQ(CompressedCache::n_bytes(shape) - without, sign_bytes(64, 64));
  shape.side = Side::kValue;
  EXPECT_EQ(CompressedCache::create(shape)->signs(), nullptr);
}

}  // namespace
}  // namespace slipstream::turbo
