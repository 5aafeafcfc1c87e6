// Every instruction set of this machine gives what signs and digits give one by one.
#include "device/attention/sign_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "device/attention/amx.h"
#include "device/attention/amx_signs.h"
#include "device/kernel_test_support.h"
#include "device/kv_buffer/key_signs.h"

namespace slipstream::turbo {
namespace {

constexpr int kHeadDims[] = {16, 32, 48, 64, 80, 96, 128, 192, 256, 576};
constexpr int kSomeChunks = 5;

class Signs : public testing::TestWithParam<int> {
 protected:
  Signs()
      : head_dim_(GetParam()),
        plane_bytes_(sign_plane_bytes(kSomeChunks * kChunkTokens)),
        memory_(sign_bytes(head_dim_, kSomeChunks * kChunkTokens)) {
    for (std::uint8_t& byte : memory_.span()) byte = static_cast<std::uint8_t>(random_());
    for (std::uint8_t& byte : memory_.span().subspan(head_dim_ / 8 * plane_bytes_)) byte %= 0xF8;
    for (int plane = 0; plane < head_dim_ / 8; ++plane) {
      all_.push_back(static_cast<std::uint16_t>(plane));
    }
    some_ = {all_.front(), all_.back()};
    if (all_.size() > 4) some_.insert(some_.end(), {all_[1], all_[3]});  // in any order
  }

  // Bit c % 8 of the byte of channels c / 8.
  [[nodiscard]] int sign_at(int chunk, int token, int channel) {
    return memory_.data()[static_cast<std::size_t>(channel / 8) * plane_bytes_ +
                          static_cast<std::size_t>(chunk * kChunkTokens + token)] >>
               (channel % 8) &
           1;
  }
  [[nodiscard]] ChunkSigns of_chunk(int chunk, std::span<const std::uint16_t> planes) {
    return {.first_plane = memory_.data() + chunk * kChunkTokens,
            .plane_bytes = plane_bytes_,
            .planes = planes,
            .ahead = 0};
  }
  void make_queries();
  [[nodiscard]] std::int32_t dot(std::size_t row, int chunk, int token,
                                 std::span<const std::uint16_t> planes);

  static constexpr std::size_t kRows = 7;
  std::mt19937 random_{11};
  int head_dim_;
  std::size_t plane_bytes_;
  Guarded<std::uint8_t> memory_;
  std::vector<std::uint16_t> all_;
  std::vector<std::uint16_t> some_;
  std::vector<std::vector<int>> digits_;
  Guarded<std::int8_t> tables_{kRows * sign_table_bytes(GetParam())};
};

void Signs::make_queries() {
  std::normal_distribution<float> gauss;
  for (std::size_t row = 0; row < kRows; ++row) {
    std::vector<float> query(static_cast<std::size_t>(head_dim_));
    for (float& x : query) x = row == 0 ? 3.0F : gauss(random_);  // row 0: all digits the largest
    float peak = 0;
    for (const float x : query) peak = std::max(peak, std::abs(x));
    const float scale =
        make_sign_tables(query, peak, tables_.data() + row * sign_table_bytes(head_dim_));
    EXPECT_FLOAT_EQ(scale, peak / kSignDigitMax);
    std::vector<int>& digits = digits_.emplace_back();
    for (const float x : query) {
      digits.push_back(static_cast<int>(std::lround(x * (kSignDigitMax / peak))));
    }
  }
}

std::int32_t Signs::dot(std::size_t row, int chunk, int token,
                        std::span<const std::uint16_t> planes) {
  std::int32_t sum = 0;
  for (const std::uint16_t plane : planes) {
    for (int c = plane * 8; c < plane * 8 + 8; ++c) {
      const int digit = digits_[row][static_cast<std::size_t>(c)];
      sum += sign_at(chunk, token, c) == 1 ? digit : -digit;
    }
  }
  return sum;
}

TEST_P(Signs, DotsMatchTheReference) {
  make_queries();
  for (const std::vector<std::uint16_t>& planes : {all_, some_}) {
    std::vector<std::int32_t> expected;
    for (std::size_t row = 0; row < kRows; ++row) {
      for (int token = 0; token < kChunkTokens; ++token) {
        expected.push_back(dot(row, 2, token, planes));
      }
    }
    for (const std::size_t n_rows : {std::size_t{1}, std::size_t{2}, kRows}) {
      on_every_target([&] {
        std::vector<std::int32_t> found(n_rows * kChunkTokens, -1);
        sign_dots({.signs = of_chunk(2, planes),
                   .tables = tables_.data(),
                   .row_tables = sign_table_bytes(head_dim_),
                   .n_rows = static_cast<int>(n_rows),
                   .dots = found.data()});
        EXPECT_TRUE(std::ranges::equal(found, std::span(expected).first(found.size())));
      });
    }
  }
}

TEST_P(Signs, ScanMatchesTheReference) {
  constexpr int kChunks[] = {0, 1, 4};
  make_queries();
  const std::uint8_t* scales = memory_.data() + all_.size() * plane_bytes_;
  const float gains[kRows] = {1, 0.5F, 0.01F, 2, 3, 4, 5};
  for (const std::vector<std::uint16_t>& planes : {all_, some_}) {
    for (const std::size_t n_rows : {std::size_t{1}, std::size_t{2}, kRows}) {
      on_every_target([&] {
        std::vector<float> best(n_rows * kSomeChunks, -1);
        std::vector<std::int32_t> dots(n_rows * kChunkTokens);
        scan_signs({.signs = memory_.data(),
                    .plane_bytes = plane_bytes_,
                    .planes = planes,
                    .scales = scales,
                    .chunks = kChunks,
                    .tables = tables_.data(),
                    .row_tables = sign_table_bytes(head_dim_),
                    .n_rows = static_cast<int>(n_rows),
                    .gains = gains,
                    .best = best.data(),
                    .best_stride = kSomeChunks,
                    .dots = dots.data()});
        for (std::size_t row = 0; row < n_rows; ++row) {
          for (const int chunk : kChunks) {
            float expected = -std::numeric_limits<float>::infinity();
            for (int token = 0; token < kChunkTokens; ++token) {
              const float scale = from_sign_scale(scales[chunk * kChunkTokens + token]);
              expected = std::max(expected, static_cast<float>(dot(row, chunk, token, planes)) *
                                                scale * gains[row]);
            }
            const float found = best[row * kSomeChunks + static_cast<std::size_t>(chunk)];
            EXPECT_NEAR(found, expected, 1e-5F * std::abs(expected)) << "chunk " << chunk;
          }
          EXPECT_EQ(best[row * kSomeChunks + 2], -1);  // not asked for
        }
      });
    }
  }
}

TEST_P(Signs, OfNothingAreNothing) {
  std::vector<float> query(static_cast<std::size_t>(head_dim_),
                           std::numeric_limits<float>::quiet_NaN());
  std::vector<std::int8_t> tables(sign_table_bytes(head_dim_), 1);
  EXPECT_EQ(make_sign_tables(query, 0, tables.data()), 0);
  EXPECT_EQ(tables, std::vector<std::int8_t>(tables.size(), 0));
}

TEST_P(Signs, ScanOnAmxMatchesTheReference) {
  constexpr int kChunks[] = {0, 3, 4};
  constexpr std::size_t kMany = 37;
  if (!has_amx()) GTEST_SKIP() << "this machine has no AMX";
  const auto stride = static_cast<std::size_t>(head_dim_ + 64);
  Guarded<std::int8_t> digits(kMany * stride);
  for (std::int8_t& digit : digits.span()) digit = static_cast<std::int8_t>(random_() % 255 - 127);
  std::vector<float> gains;
  for (std::size_t row = 0; row < kMany; ++row) gains.push_back(0.1F * static_cast<float>(row + 1));
  const std::uint8_t* scales = memory_.data() + all_.size() * plane_bytes_;
  const AmxScope scope(true, {.key_rows = 16, .key_part_channels = 64, .value_rows = 16});
  for (const std::vector<std::uint16_t>& planes : {all_, some_}) {
    for (const std::size_t n_rows : {std::size_t{16}, kMany}) {
      std::vector<std::int8_t> tiles(
          (n_rows + 15) / 16 * n_digit_tiles(planes.size()) * kDigitTileBytes, 1);
      make_digit_tiles(digits.data(), stride, static_cast<int>(n_rows), planes, tiles.data());
      std::vector<float> best(n_rows * kSomeChunks, -1);
      amx_scan_signs({.signs = memory_.data(),
                      .plane_bytes = plane_bytes_,
                      .planes = planes,
                      .scales = scales,
                      .chunks = kChunks,
                      .digit_tiles = tiles.data(),
                      .n_rows = static_cast<int>(n_rows),
                      .gains = gains.data(),
                      .best = best.data(),
                      .best_stride = kSomeChunks});
      for (std::size_t row = 0; row < n_rows; ++row) {
        for (const int chunk : kChunks) {
          float expected = -std::numeric_limits<float>::infinity();
          for (int token = 0; token < kChunkTokens; ++token) {
            int dot = 0;
            for (const std::uint16_t plane : planes) {
              for (int c = plane * 8; c < plane * 8 + 8; ++c) {
                const int digit = digits.data()[row * stride + static_cast<std::size_t>(c)];
                dot += sign_at(chunk, token, c) == 1 ? digit : -digit;
              }
            }
            const float scale = from_sign_scale(scales[chunk * kChunkTokens + token]);
            expected = std::max(expected, static_cast<float>(dot) * scale * gains[row]);
          }
          const float found = best[row * kSomeChunks + static_cast<std::size_t>(chunk)];
          EXPECT_NEAR(found, expected, 1e-5F * std::abs(expected)) << "chunk " << chunk;
        }
        EXPECT_EQ(best[row * kSomeChunks + 1], -1);  // not asked for
      }
    }
  }
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
  const float gains[kRows] = {1.0F, 0.01F, 0.3F};
  const float slopes[kRows] = {1.0F, 0.5F, 1.0F};
  for (const int n_tokens : {1, 15, 16, 17, 40, 63, 64}) {
    Guarded<std::uint8_t> scales(kChunkTokens);
    for (std::uint8_t& scale : scales.span()) scale = sign_scale(std::abs(gauss(random)));
    float expected[kRows];
    for (std::size_t row = 0; row < kRows; ++row) {
      expected[row] = -std::numeric_limits<float>::infinity();
      for (std::size_t token = 0; token < static_cast<std::size_t>(n_tokens); ++token) {
        const auto dot = static_cast<float>(dots[row * kChunkTokens + token]);
        const float masked = biases[row] == nullptr ? 0 : slopes[row] * biases[row][token];
        expected[row] = std::max(expected[row],
                                 dot * from_sign_scale(scales.span()[token]) * gains[row] + masked);
      }
    }
    on_every_target([&] {
      float best[2 * kRows] = {};
      best_of_chunk({.dots = dots.data(),
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
