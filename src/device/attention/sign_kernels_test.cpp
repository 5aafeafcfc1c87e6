// Every instruction set of this machine gives what signs and digits give one by one.
#include "device/attention/sign_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "device/codec/f16.h"
#include "device/kernel_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr int kHeadDims[] = {16, 32, 48, 64, 80, 96, 128, 192, 256, 576};

// The sign of a channel of a token: bit k of byte j of the token's word has channel 4k + j.
int sign_at(const std::uint8_t* tile, int token, int channel) {
  const std::uint8_t byte = tile[channel / 32 * 64 + token * 4 + channel % 4];
  return (byte >> (channel % 32 / 4)) & 1;
}

class Signs : public testing::TestWithParam<int> {
 protected:
  Signs()
      : head_dim_(GetParam()),
        stride_(static_cast<std::size_t>((head_dim_ + 63) / 64 * 64)),
        signs_(kChunkTiles * plane_bytes(1, head_dim_)),
        digits_(kRows * stride_) {
    for (std::uint8_t& byte : signs_.span()) byte = static_cast<std::uint8_t>(random_());
    for (std::size_t i = 0; i < digits_.span().size(); ++i) {
      const bool is_behind = i % stride_ >= static_cast<std::size_t>(head_dim_);
      digits_.data()[i] =
          is_behind ? std::int8_t{0} : static_cast<std::int8_t>(random_() % 255 - 127);
    }
  }

  static constexpr std::size_t kRows = 5;
  std::mt19937 random_{11};
  int head_dim_;
  std::size_t stride_;
  Guarded<std::uint8_t> signs_;
  Guarded<std::int8_t> digits_;
};

TEST_P(Signs, DotsMatchTheReference) {
  for (const int n_tiles : {1, 3, 4}) {
    std::vector<std::int32_t> expected(kRows * kChunkTokens, -1);
    for (std::size_t row = 0; row < kRows; ++row) {
      for (int token = 0; token < n_tiles * kTileTokens; ++token) {
        const std::uint8_t* tile = signs_.data() + static_cast<std::size_t>(token / kTileTokens) *
                                                       plane_bytes(1, head_dim_);
        std::int32_t sum = 0;
        for (int c = 0; c < head_dim_; ++c) {
          sum += sign_at(tile, token % kTileTokens, c) *
                 digits_.data()[row * stride_ + static_cast<std::size_t>(c)];
        }
        expected[row * kChunkTokens + static_cast<std::size_t>(token)] = sum;
      }
    }
    on_every_target([&] {
      std::vector<std::int32_t> found(expected.size(), -1);
      sign_dots({.keys = signs_.data(),
                 .tile_bytes = plane_bytes(1, head_dim_),
                 .n_tiles = n_tiles,
                 .n_channels = head_dim_,
                 .rows = digits_.data(),
                 .row_stride = stride_,
                 .n_rows = kRows,
                 .dots = found.data()});
      EXPECT_EQ(found, expected);
    });
  }
}

TEST_P(Signs, ExpandMatchesTheReference) {
  on_every_target([&] {
    Guarded<std::uint8_t> bytes(expanded_bytes(head_dim_));
    expand_signs(head_dim_, kChunkTiles, signs_.data(), bytes.data());
    for (int token = 0; token < kChunkTokens; ++token) {
      const auto tile = static_cast<std::size_t>(token / kTileTokens);
      const int slot = token % kTileTokens;
      for (int c = 0; c < head_dim_; ++c) {
        const std::size_t at = tile * static_cast<std::size_t>(head_dim_ * kTileTokens) +
                               static_cast<std::size_t>(c / 4 * 64 + slot * 4 + c % 4);
        ASSERT_EQ(bytes.data()[at],
                  sign_at(signs_.data() + tile * plane_bytes(1, head_dim_), slot, c))
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
    // The last tile's scales are whole, and nothing lies behind them.
    const int n_scales = (n_tokens + kTileTokens - 1) / kTileTokens * kTileTokens;
    Guarded<std::uint16_t> scales(static_cast<std::size_t>(n_scales));
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
                     .scales = scales.data(),
                     .n_tokens = n_tokens,
                     .n_rows = kRows,
                     .digit_sums = sums,
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
