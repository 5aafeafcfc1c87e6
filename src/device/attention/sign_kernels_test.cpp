// Every instruction set of this machine gives what signs and digits give one by one.
#include "device/attention/sign_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "device/codec/f16.h"
#include "device/kernel_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr int kHeadDims[] = {16, 32, 48, 64, 80, 96, 128, 192, 256, 576};

// Bit c % 8 of the byte of channels c / 8.
int sign_at(const std::uint8_t* chunk, int token, int channel) {
  return chunk[channel / 8 * kChunkTokens + token] >> (channel % 8) & 1;
}

class Signs : public testing::TestWithParam<int> {
 protected:
  Signs() : head_dim_(GetParam()), signs_(chunk_sign_bytes(head_dim_)) {
    for (std::uint8_t& byte : signs_.span()) byte = static_cast<std::uint8_t>(random_());
  }

  std::mt19937 random_{11};
  int head_dim_;
  Guarded<std::uint8_t> signs_;
};

TEST_P(Signs, DotsMatchTheReference) {
  constexpr std::size_t kRows = 7;
  const auto dim = static_cast<std::size_t>(head_dim_);
  std::normal_distribution<float> gauss;
  Guarded<std::int8_t> tables(kRows * sign_table_bytes(head_dim_));
  std::vector<std::int32_t> expected(kRows * kChunkTokens);
  for (std::size_t row = 0; row < kRows; ++row) {
    std::vector<float> query(dim);
    for (float& x : query) x = row == 0 ? 3.0F : gauss(random_);  // row 0: all digits the largest
    float peak = 0;
    for (const float x : query) peak = std::max(peak, std::abs(x));
    const float scale =
        make_sign_tables(query, peak, tables.data() + row * sign_table_bytes(head_dim_));
    EXPECT_FLOAT_EQ(scale, peak / kSignDigitMax);
    for (int token = 0; token < kChunkTokens; ++token) {
      std::int32_t sum = 0;
      for (int c = 0; c < head_dim_; ++c) {
        const auto digit = static_cast<int>(
            std::lround(query[static_cast<std::size_t>(c)] * (kSignDigitMax / peak)));
        sum += sign_at(signs_.data(), token, c) == 1 ? digit : -digit;
      }
      expected[row * kChunkTokens + static_cast<std::size_t>(token)] = sum;
    }
  }
  for (const std::size_t n_rows : {std::size_t{1}, std::size_t{2}, kRows}) {
    on_every_target([&] {
      std::vector<std::int32_t> found(n_rows * kChunkTokens, -1);
      sign_dots({.signs = signs_.data(),
                 .head_dim = head_dim_,
                 .tables = tables.data(),
                 .n_rows = static_cast<int>(n_rows),
                 .dots = found.data()});
      EXPECT_TRUE(std::ranges::equal(found, std::span(expected).first(found.size())));
    });
  }
}

TEST_P(Signs, OfNothingAreNothing) {
  std::vector<float> query(static_cast<std::size_t>(head_dim_),
                           std::numeric_limits<float>::quiet_NaN());
  std::vector<std::int8_t> tables(sign_table_bytes(head_dim_), 1);
  EXPECT_EQ(make_sign_tables(query, 0, tables.data()), 0);
  EXPECT_EQ(tables, std::vector<std::int8_t>(tables.size(), 0));
}

TEST_P(Signs, ExpandMatchesTheReference) {
  on_every_target([&] {
    Guarded<std::uint8_t> bytes(expanded_bytes(head_dim_));
    expand_signs(head_dim_, signs_.data(), bytes.data());
    for (int token = 0; token < kChunkTokens; ++token) {
      for (int c = 0; c < head_dim_; ++c) {
        const int at = token / kTileTokens * head_dim_ * kTileTokens + c / 4 * kChunkTokens +
                       token % kTileTokens * 4 + c % 4;
        ASSERT_EQ(bytes.data()[at], sign_at(signs_.data(), token, c))
            << "token " << token << " channel " << c;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Signs, testing::ValuesIn(kHeadDims));

TEST(BestOfChunk, MatchesTheReference) {
  constexpr std::size_t kRows = 3;
  std::mt19937 random(5);
  std::normal_distribution<float> gauss;
  std::vector<std::int32_t> dots(kRows * kChunkTokens);
  for (std::int32_t& dot : dots) dot = static_cast<std::int32_t>(random() % 4000) - 2000;
  std::vector<float> bias(kChunkTokens);
  for (std::size_t i = 0; i < bias.size(); ++i) {
    bias[i] = i % 3 == 0 ? -std::numeric_limits<float>::infinity() : gauss(random);
  }
  const float* const biases[kRows] = {nullptr, bias.data(), bias.data()};
  const std::int32_t sums[kRows] = {0, 77, -500};
  const float gains[kRows] = {1.0F, 0.01F, 0.3F};
  const float slopes[kRows] = {1.0F, 0.5F, 1.0F};
  for (const int n_tokens : {1, 15, 16, 17, 40, 63, 64}) {
    Guarded<std::uint16_t> scales(kChunkTokens);
    for (std::uint16_t& scale : scales.span()) scale = float_to_f16(std::abs(gauss(random)));
    float expected[kRows];
    for (std::size_t row = 0; row < kRows; ++row) {
      expected[row] = -std::numeric_limits<float>::infinity();
      for (std::size_t token = 0; token < static_cast<std::size_t>(n_tokens); ++token) {
        const auto twice = static_cast<float>(2 * dots[row * kChunkTokens + token] - sums[row]);
        const float masked = biases[row] == nullptr ? 0 : slopes[row] * biases[row][token];
        expected[row] = std::max(expected[row],
                                 twice * f16_to_float(scales.span()[token]) * gains[row] + masked);
      }
    }
    on_every_target([&] {
      float best[2 * kRows] = {};
      best_of_chunk({.dots = dots.data(),
                     .dot_factor = 2,
                     .digit_sums = sums,
                     .scales = scales.data(),
                     .n_tokens = n_tokens,
                     .n_rows = kRows,
                     .gains = gains,
                     .bias = biases,
                     .slopes = slopes,
                     .best = best,
                     .best_stride = 2});
      for (std::size_t row = 0; row < kRows; ++row) {
        if (std::isinf(expected[row])) {
          EXPECT_EQ(best[2 * row], expected[row]);
        } else {
          EXPECT_NEAR(best[2 * row], expected[row], 1e-5F * (1 + std::abs(expected[row])));
        }
      }
    });
  }
}

}  // namespace
}  // namespace slipstream::turbo
