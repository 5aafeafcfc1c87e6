// Every instruction set that this machine has gives what the scalar reference gives: integers
// exactly, and the steps between them within the rounding that they are specified with.
#include "device/attention/chunk_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "device/attention/amx.h"
#include "device/attention/chunk_kernels_ref.h"
#include "device/codec/f16.h"
#include "device/kernel_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

template <typename T>
void fill_random(std::mt19937& random, std::span<T> bytes) {
  for (T& byte : bytes) byte = static_cast<T>(random());
}

class Expand : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Expand, AsTheReferenceDoes) {
  const auto [bits, head_dim] = GetParam();
  std::mt19937 random(3);
  Guarded<std::uint8_t> codes(tile_code_bytes(bits, head_dim));
  fill_random(random, codes.span());

  Guarded<std::uint8_t> keys(expanded_bytes(head_dim) / kChunkTiles);
  std::vector<std::uint8_t> expected_keys(keys.span().size());
  ref::expand_keys(bits, head_dim, codes.data(), expected_keys.data());
  on_every_target([&] {
    std::ranges::fill(keys.span(), std::uint8_t{0});
    expand_keys(bits, head_dim, codes.data(), keys.data());
    EXPECT_TRUE(std::ranges::equal(keys.span(), expected_keys));
  });

  Guarded<std::int8_t> values(expanded_bytes(head_dim));
  for (const int tile : {0, 3}) {
    std::vector<std::int8_t> expected(values.span().size(), 99);
    ref::expand_values(bits, head_dim, codes.data(), tile, expected.data());
    on_every_target([&] {
      std::ranges::fill(values.span(), std::int8_t{99});
      expand_values(bits, head_dim, codes.data(), tile, values.data());
      EXPECT_TRUE(std::ranges::equal(values.span(), expected));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, Expand,
                         testing::Combine(testing::Values(2, 3, 4, 8),
                                          testing::Values(16, 64, 80, 96, 128, 192, 256)));

struct ProductCase {
  int n_rows;
  int n_channels;
  int n_tiles;
};

std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> cases;
  for (const int n_rows : {1, 2, 3, 4, 7, 8, 13, 16, 33}) {
    for (const int n_channels : {16, 32, 64, 80, 96, 128, 256}) {
      for (const int n_tiles : {1, 3, 4}) cases.push_back({n_rows, n_channels, n_tiles});
    }
  }
  return cases;
}

// AMX reads and writes whole groups of 16 rows, and rows and tiles behind their end.
std::size_t padded_rows(int n_rows) { return static_cast<std::size_t>((n_rows + 15) / 16 * 16); }

void expect_dots(const ProductCase& c, void (*kernel)(const DotRows&)) {
  std::mt19937 random(static_cast<unsigned>(c.n_rows * 1000 + c.n_channels));
  const auto tile_bytes = static_cast<std::size_t>(c.n_channels * kTileTokens);
  const std::size_t stride = static_cast<std::size_t>((c.n_channels + 63) / 64 * 64);
  Guarded<std::uint8_t> keys(tile_bytes * static_cast<std::size_t>(c.n_tiles) +
                             (kernel == dot_rows ? 0 : kReadPast));
  Guarded<std::int8_t> rows(stride * padded_rows(c.n_rows));
  fill_random(random, keys.span());
  for (std::size_t i = 0; i < rows.span().size(); ++i) {
    rows.data()[i] = i % stride < static_cast<std::size_t>(c.n_channels)
                         ? static_cast<std::int8_t>(random())
                         : std::int8_t{0};
  }
  Guarded<std::int32_t> dots(padded_rows(c.n_rows) * kChunkTokens);
  std::vector<std::int32_t> expected(dots.span().size());
  DotRows work{.keys = keys.data(),
               .tile_bytes = tile_bytes,
               .n_tiles = c.n_tiles,
               .n_channels = c.n_channels,
               .rows = rows.data(),
               .row_stride = stride,
               .n_rows = c.n_rows,
               .dots = expected.data()};
  ref::dot_rows(work);
  work.dots = dots.data();
  kernel(work);
  for (int row = 0; row < c.n_rows; ++row) {
    for (int i = 0; i < c.n_tiles * kTileTokens; ++i) {
      const auto at = static_cast<std::size_t>(row * kChunkTokens + i);
      ASSERT_EQ(dots.data()[at], expected[at]) << c.n_rows << ' ' << c.n_channels << ' '
                                               << c.n_tiles << ": row " << row << " token " << i;
    }
  }
}

void expect_mixes(const ProductCase& c, void (*kernel)(const MixRows&)) {
  std::mt19937 random(static_cast<unsigned>(c.n_rows * 1000 + c.n_channels));
  Guarded<std::int8_t> values(expanded_bytes(c.n_channels));
  Guarded<std::uint8_t> weights(padded_rows(c.n_rows) * kChunkTokens);
  fill_random(random, values.span());
  for (std::size_t i = 0; i < weights.span().size(); ++i) {
    const bool present = i % kChunkTokens < static_cast<std::size_t>(c.n_tiles * kTileTokens);
    weights.data()[i] = present ? static_cast<std::uint8_t>(random()) : std::uint8_t{0};
  }
  Guarded<std::int32_t> mixes(padded_rows(c.n_rows) * static_cast<std::size_t>(c.n_channels));
  std::vector<std::int32_t> expected(mixes.span().size());
  MixRows work{.values = values.data(),
               .n_tiles = c.n_tiles,
               .n_blocks = c.n_channels / kTileTokens,
               .weights = weights.data(),
               .n_rows = c.n_rows,
               .mixes = expected.data(),
               .mix_stride = static_cast<std::size_t>(c.n_channels)};
  ref::mix_rows(work);
  work.mixes = mixes.data();
  kernel(work);
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.n_rows * c.n_channels); ++i) {
    ASSERT_EQ(mixes.data()[i], expected[i])
        << c.n_rows << ' ' << c.n_channels << ' ' << c.n_tiles << ": at " << i;
  }
}

TEST(ChunkKernels, ProductsAreTheReferences) {
  for (const ProductCase& c : product_cases()) {
    on_every_target([&] {
      expect_dots(c, dot_rows);
      expect_mixes(c, mix_rows);
    });
  }
}

TEST(ChunkKernels, ProductsOnAmxAreTheReferences) {
  if (!has_amx()) GTEST_SKIP() << "this machine has no AMX";
  for (const ProductCase& c : product_cases()) {
    const int n_rows = std::min(c.n_rows, 16);
    const AmxScope tiles(
        true, {.key_rows = n_rows, .key_part_channels = c.n_channels, .value_rows = n_rows});
    expect_dots(c, amx_dot_rows);
    expect_mixes(c, amx_mix_rows);
  }
}

TEST(ChunkKernels, ScoresPutDigitsAndScalesTogether) {
  std::mt19937 random(5);
  const float addend[] = {3, 3};
  for (const auto& [digits, with_addend] : {std::pair(1, true), {1, false}, {2, true}}) {
    Guarded<std::int32_t> dots(static_cast<std::size_t>(2 * digits) * kChunkTokens);
    for (std::int32_t& dot : dots.span()) dot = static_cast<std::int32_t>(random() % 2000) - 1000;
    Guarded<float> scales(kChunkTokens);
    std::iota(scales.span().begin(), scales.span().end(), 1.0F);
    const std::int32_t offset[] = {7, -5};
    const float factor[] = {0.5F, 2};
    on_every_target([&] {
      Guarded<float> scores(std::size_t{2} * kChunkTokens);
      std::ranges::fill(scores.span(), with_addend ? 77.0F : 3.0F);
      score_rows({.dots = dots.data(),
                  .n_digits = digits,
                  .scales = scales.data(),
                  .scale_stride = kTileTokens,
                  .n_tiles = kChunkTiles,
                  .offset = offset,
                  .factor = factor,
                  .addend = with_addend ? addend : nullptr,
                  .n_queries = 2,
                  .scores = scores.data()});
      for (std::size_t q = 0; q < 2; ++q) {
        for (std::size_t i = 0; i < kChunkTokens; ++i) {
          const std::int32_t* dot =
              dots.data() + q * static_cast<std::size_t>(digits) * kChunkTokens;
          const std::int32_t whole = digits == 1 ? dot[i] : dot[i] * 128 + dot[kChunkTokens + i];
          const float expected =
              3 + factor[q] * scales.data()[i] * static_cast<float>(whole + offset[q]);
          EXPECT_NEAR(scores.data()[q * kChunkTokens + i], expected, 1e-6 * std::abs(expected));
        }
      }
    });
  }
}

struct SoftenCase {
  float softcap;
  bool masked;
  int n_tokens;
};

TEST(ChunkKernels, SoftmaxOverTwoChunksIsTheWhole) {
  std::mt19937 random(6);
  std::normal_distribution<float> gauss(0, 4);
  for (const SoftenCase& c :
       {SoftenCase{0, false, 64}, {0, true, 64}, {5, true, 64}, {0, false, 21}, {5, true, 33}}) {
    constexpr float kScale = 0.3F;
    constexpr float kSlope = 0.7F;
    std::vector<float> input(std::size_t{2} * kChunkTokens);
    for (float& value : input) value = gauss(random);
    Guarded<float> bias(kChunkTokens);
    for (std::size_t i = 0; i < kChunkTokens; ++i) {
      bias.data()[i] = i % 3 == 1 ? kMinusInfinity : -static_cast<float>(i) / 8;
    }
    // The second chunk ends early, as the last of a cache may.
    const std::size_t n_second = static_cast<std::size_t>(c.n_tokens);
    std::vector<double> scores;
    for (std::size_t i = 0; i < kChunkTokens + n_second; ++i) {
      auto score = static_cast<double>(kScale) * static_cast<double>(input[i]);
      if (c.softcap != 0) score = static_cast<double>(c.softcap) * std::tanh(score);
      if (c.masked) score += static_cast<double>(kSlope * bias.data()[i % kChunkTokens]);
      scores.push_back(score);
    }
    const double largest = std::ranges::max(scores);
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);

    on_every_target([&] {
      float max = kMinusInfinity;
      float total = 0;
      float rescale[2] = {};
      Guarded<float> weights(std::size_t{2} * kChunkTokens);
      std::ranges::copy(input, weights.data());
      const float* bias_row = c.masked ? bias.data() : nullptr;
      for (std::size_t chunk = 0; chunk < 2; ++chunk) {
        soften({.scores = weights.data() + chunk * kChunkTokens,
                .bias = &bias_row,
                .slope = &kSlope,
                .scale = kScale,
                .softcap = c.softcap,
                .n_tokens = chunk == 0 ? kChunkTokens : c.n_tokens,
                .n_queries = 1,
                .max = &max,
                .sum = &total,
                .rescale = &rescale[chunk]});
      }
      EXPECT_EQ(rescale[0], 0);
      EXPECT_NEAR(total, sum, 2e-6 * sum);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const float weight = weights.data()[i] * (i < kChunkTokens ? rescale[1] : 1);
        EXPECT_NEAR(weight, scores[i], 2e-6) << i;
        EXPECT_EQ(weight == 0, scores[i] == 0) << i;
      }
    });
  }
}

TEST(ChunkKernels, SoftmaxOfNothingIsNothing) {
  on_every_target([&] {
    float max = kMinusInfinity;
    float sum = 0;
    float rescale = 0;
    const float slope = 1;
    std::vector<float> scores(kChunkTokens, 1);
    const std::vector<float> bias(kChunkTokens, kMinusInfinity);
    const float* bias_row = bias.data();
    soften({.scores = scores.data(),
            .bias = &bias_row,
            .slope = &slope,
            .scale = 1,
            .softcap = 0,
            .n_tokens = kChunkTokens,
            .n_queries = 1,
            .max = &max,
            .sum = &sum,
            .rescale = &rescale});
    EXPECT_EQ(sum, 0);
    EXPECT_EQ(rescale, 1);
    EXPECT_EQ(max, kMinusInfinity);
    for (const float weight : scores) EXPECT_EQ(weight, 0);
  });
}

// One large weight and many that are each less than half a step: their sum is kept.
TEST(ChunkKernels, RoundedWeightsKeepTheirSum) {
  Guarded<float> weights(kChunkTokens);
  std::ranges::fill(weights.span(), 0.0015F);
  weights.data()[0] = 1;
  const std::vector<float> scales(kChunkTokens, 2);
  for (const int digits : {1, 2}) {
    on_every_target([&] {
      Guarded<std::uint8_t> out(static_cast<std::size_t>(digits) * kChunkTokens);
      float step = 0;
      weigh_rows({.weights = weights.data(),
                  .scales = scales.data(),
                  .scale_stride = kTileTokens,
                  .n_tiles = kChunkTiles,
                  .n_digits = digits,
                  .n_queries = 1,
                  .digits = out.data(),
                  .step = &step});
      double sum = 0;
      for (std::size_t i = 0; i < kChunkTokens; ++i) {
        const int whole =
            digits == 1 ? out.data()[i] : out.data()[i] * 256 + out.data()[kChunkTokens + i];
        sum += static_cast<double>(step) * whole;
      }
      // Each of the 16 slots keeps its own sum, to within half a step.
      const double expected = 2 * (1 + 63 * 0.0015);
      EXPECT_NEAR(sum, expected, digits == 1 ? 16 * 0.5 * 2.0 / 255 : 64 * 0.5 * 2.0 / 65535);
      EXPECT_GT(sum, digits == 1 ? 2.1 : expected - 0.001);
    });
  }
}

TEST(ChunkKernels, TokensThatAreNotThereWeighNothing) {
  on_every_target([&] {
    const std::vector<float> weights(kChunkTokens, 1);
    const std::vector<float> scales(kChunkTokens, 1);
    std::vector<std::uint8_t> out(std::size_t{2} * kChunkTokens, 77);
    float step = 0;
    weigh_rows({.weights = weights.data(),
                .scales = scales.data(),
                .scale_stride = kTileTokens,
                .n_tiles = 1,
                .n_digits = 2,
                .n_queries = 1,
                .digits = out.data(),
                .step = &step});
    for (std::size_t i = 0; i < kChunkTokens; ++i) {
      EXPECT_EQ(out[i], i < kTileTokens ? 255 : 0);
      EXPECT_EQ(out[kChunkTokens + i], i < kTileTokens ? 255 : 0);
    }
  });
}

TEST(ChunkKernels, MixesAreAddedToWhatWasBefore) {
  for (const int digits : {1, 2}) {
    constexpr std::size_t kChannels = 80;
    Guarded<std::int32_t> mixes(kChannels * static_cast<std::size_t>(digits));
    std::iota(mixes.span().begin(), mixes.span().end(), -50);
    const float step = 0.25F;
    const float rescale = 0.5F;
    on_every_target([&] {
      Guarded<float> output(kChannels);
      std::ranges::fill(output.span(), 8.0F);
      add_mixes({.mixes = mixes.data(),
                 .mix_stride = kChannels,
                 .n_digits = digits,
                 .n_channels = kChannels,
                 .step = &step,
                 .rescale = &rescale,
                 .n_queries = 1,
                 .output = output.data(),
                 .output_stride = kChannels});
      for (std::size_t i = 0; i < kChannels; ++i) {
        const std::int32_t mix =
            digits == 1 ? mixes.data()[i] : mixes.data()[i] * 256 + mixes.data()[kChannels + i];
        EXPECT_FLOAT_EQ(output.data()[i], 4 + step * static_cast<float>(mix));
      }
    });
  }
}

TEST(ChunkKernels, PlainRowsAreComputedInFloat) {
  std::mt19937 random(8);
  std::normal_distribution<float> gauss;
  constexpr std::size_t kDim = 80;
  constexpr int kTokens = 5;
  constexpr std::size_t kStride = 96;
  Guarded<std::uint16_t> rows(kStride * (kTokens - 1) + kDim);
  for (std::uint16_t& value : rows.span()) value = float_to_f16(gauss(random));
  Guarded<float> query(kDim);
  for (float& value : query.span()) value = gauss(random);
  on_every_target([&] {
    Guarded<float> scores(kTokens);
    score_plain(rows.data(), kStride, kTokens, query.data(), kDim, scores.data());
    Guarded<float> output(kDim);
    std::ranges::fill(output.span(), 2.0F);
    add_plain(rows.data(), kStride, kTokens, scores.data(), 0.5F, kDim, output.data());
    std::vector<float> expected(kDim, 1);
    for (std::size_t token = 0; token < kTokens; ++token) {
      float score = 0;
      for (std::size_t c = 0; c < kDim; ++c) {
        score += query.data()[c] * f16_to_float(rows.data()[token * kStride + c]);
      }
      EXPECT_NEAR(scores.data()[token], score, 1e-4);
      for (std::size_t c = 0; c < kDim; ++c) {
        expected[c] += score * f16_to_float(rows.data()[token * kStride + c]);
      }
    }
    for (std::size_t c = 0; c < kDim; ++c) EXPECT_NEAR(output.data()[c], expected[c], 1e-3);
  });
}

}  // namespace
}  // namespace slipstream::turbo
