// Every instruction set of this machine gives the results of the scalar reference: integers
// exactly, and the floating-point steps between them within their specified rounding.
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
#include "device/codec/test_bases.h"
#include "device/kernel_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

template <typename T>
void fill_random(std::mt19937& random, std::span<T> bytes) {
  for (T& byte : bytes) byte = static_cast<T>(random());
}

class Expand : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Expand, MatchesTheReference) {
  const auto [bits, head_dim] = GetParam();
  std::mt19937 random(3);
  Guarded<std::uint8_t> codes(tile_code_bytes(bits, head_dim));
  fill_random(random, codes.span());

  Guarded<std::uint8_t> keys(expanded_bytes(head_dim) / kChunkTiles);
  std::vector<std::uint8_t> expected_keys(keys.span().size());
  const KeyCodes form(one_class(bits, head_dim), false);
  ref::expand_keys(form, codes.data(), expected_keys.data());
  on_every_target([&] {
    std::ranges::fill(keys.span(), std::uint8_t{0});
    expand_keys(form, codes.data(), keys.data());
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

TEST(ExpandFitted, MatchesTheReference) {
  std::mt19937 random(4);
  for (const ChannelClasses& classes : all_fitted_layouts()) {
    const KeyCodes form(classes, true);
    const int head_dim = TileLayout(Side::kKey, classes).head_dim();
    Guarded<std::uint8_t> codes(tile_code_bytes(classes));
    fill_random(random, codes.span());
    Guarded<std::uint8_t> keys(expanded_bytes(head_dim) / kChunkTiles);
    std::vector<std::uint8_t> expected(keys.span().size());
    ref::expand_keys(form, codes.data(), expected.data());
    on_every_target([&] {
      std::ranges::fill(keys.span(), std::uint8_t{0});
      expand_keys(form, codes.data(), keys.data());
      EXPECT_TRUE(std::ranges::equal(keys.span(), expected)) << head_dim;
    });
  }
}

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

// AMX reads and writes whole groups of 16 rows, and reads past the end of rows and tiles.
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

void expect_weighted_sums(const ProductCase& c, void (*kernel)(const WeightedSumRows&)) {
  std::mt19937 random(static_cast<unsigned>(c.n_rows * 1000 + c.n_channels));
  Guarded<std::int8_t> values(expanded_bytes(c.n_channels));
  Guarded<std::uint8_t> weights(padded_rows(c.n_rows) * kChunkTokens);
  fill_random(random, values.span());
  for (std::size_t i = 0; i < weights.span().size(); ++i) {
    const bool present = i % kChunkTokens < static_cast<std::size_t>(c.n_tiles * kTileTokens);
    weights.data()[i] = present ? static_cast<std::uint8_t>(random()) : std::uint8_t{0};
  }
  Guarded<std::int32_t> sums(padded_rows(c.n_rows) * static_cast<std::size_t>(c.n_channels));
  std::vector<std::int32_t> expected(sums.span().size());
  WeightedSumRows work{.values = values.data(),
                       .n_tiles = c.n_tiles,
                       .n_blocks = c.n_channels / kTileTokens,
                       .weights = weights.data(),
                       .n_rows = c.n_rows,
                       .sums = expected.data(),
                       .sum_stride = static_cast<std::size_t>(c.n_channels)};
  ref::weighted_sum_rows(work);
  work.sums = sums.data();
  kernel(work);
  for (std::size_t i = 0; i < static_cast<std::size_t>(c.n_rows * c.n_channels); ++i) {
    ASSERT_EQ(sums.data()[i], expected[i])
        << c.n_rows << ' ' << c.n_channels << ' ' << c.n_tiles << ": at " << i;
  }
}

TEST(ChunkKernels, ProductsMatchTheReference) {
  for (const ProductCase& c : product_cases()) {
    on_every_target([&] {
      expect_dots(c, dot_rows);
      expect_weighted_sums(c, weighted_sum_rows);
    });
  }
}

TEST(ChunkKernels, ProductsOnAmxMatchTheReference) {
  if (!has_amx()) GTEST_SKIP() << "this machine has no AMX";
  for (const ProductCase& c : product_cases()) {
    const int n_rows = std::min(c.n_rows, 16);
    const AmxScope tiles(
        true, {.key_rows = n_rows, .key_part_channels = c.n_channels, .value_rows = n_rows});
    expect_dots(c, amx_dot_rows);
    expect_weighted_sums(c, amx_weighted_sum_rows);
  }
}

// The input and output of softmax_chunk() for one query, with neutral defaults.
class SoftmaxInput {
 public:
  explicit SoftmaxInput(int n_weight_digits)
      : scores(kChunkTokens), value_scales(kChunkTokens), weights(std::size_t{2} * kChunkTokens) {
    std::ranges::fill(scores.span(), 0.0F);
    std::ranges::fill(value_scales.span(), 1.0F);
    std::ranges::fill(weights.span(), std::uint8_t{77});
    work.n_queries = 1;
    work.n_tokens = kChunkTokens;
    work.scores = scores.data();
    work.bias = &bias;
    work.slopes = &slope;
    work.scale = 1;
    work.max = &max;
    work.weight_sums = weight_sums;
    work.rescale = &rescale;
    work.value_scales = value_scales.data();
    work.n_weight_digits = n_weight_digits;
    work.n_value_parts = 1;
    work.weights = weights.data();
    work.weight_scales = &weight_scale;
  }

  [[nodiscard]] float sum() const {
    return std::accumulate(weight_sums, weight_sums + kTileTokens, 0.0F);
  }
  // The weight that the digits of a token stand for.
  [[nodiscard]] double weight(std::size_t token) {
    const int whole = work.n_weight_digits == 1
                          ? weights.data()[token]
                          : weights.data()[token] * 256 + weights.data()[kChunkTokens + token];
    return static_cast<double>(weight_scale) * whole;
  }

  Guarded<float> scores;
  Guarded<float> value_scales;
  Guarded<std::uint8_t> weights;
  const float* bias = nullptr;
  float slope = 1;
  float max = kMinusInfinity;
  float weight_sums[kTileTokens] = {};
  float rescale = 77;
  float weight_scale = 0;
  SoftmaxChunk work{};
};

TEST(ChunkKernels, ScoresPutDigitsAndPartsTogether) {
  std::mt19937 random(5);
  for (const auto& [digits, parts] : {std::pair(1, 1), {1, 3}, {2, 1}, {2, 2}}) {
    const auto part_stride = static_cast<std::size_t>(digits) * kChunkTokens;
    Guarded<std::int32_t> dots(static_cast<std::size_t>(parts) * part_stride);
    for (std::int32_t& dot : dots.span()) dot = static_cast<std::int32_t>(random() % 2000) - 1000;
    Guarded<float> scales(static_cast<std::size_t>(parts) * kChunkTokens);
    for (float& scale : scales.span()) scale = static_cast<float>(random() % 100) * 1e-6F;
    const std::int32_t offsets[] = {7, -5, 300};
    const float query_scale = 0.5F;
    const float centre_score = 0.25F;
    on_every_target([&] {
      SoftmaxInput one(2);
      one.work.value_scales = nullptr;  // weights are not quantised
      one.work.n_value_parts = 0;
      one.work.dots = dots.data();
      one.work.dot_part_stride = part_stride;
      one.work.n_query_digits = digits;
      one.work.n_key_parts = parts;
      one.work.key_scales = scales.data();
      one.work.offsets = offsets;
      one.work.query_scales = &query_scale;
      one.work.centre_scores = &centre_score;
      softmax_chunk(one.work);
      for (std::size_t i = 0; i < kChunkTokens; ++i) {
        double score = 0.25;
        for (std::size_t part = 0; part < static_cast<std::size_t>(parts); ++part) {
          const std::int32_t* dot = dots.data() + part * part_stride + i;
          const std::int32_t whole = digits == 1 ? dot[0] : dot[0] * 128 + dot[kChunkTokens];
          const std::size_t scale_at =
              (i / kTileTokens * static_cast<std::size_t>(parts) + part) * kTileTokens +
              i % kTileTokens;
          score += 0.5 * static_cast<double>(scales.data()[scale_at]) * (whole + offsets[part]);
        }
        const double log_weight = std::log2(static_cast<double>(one.scores.data()[i]));
        EXPECT_NEAR(log_weight + static_cast<double>(one.max), score * static_cast<double>(kLog2E),
                    1e-5)
            << i;
      }
    });
  }
}

struct SoftmaxCase {
  float softcap;
  bool masked;
  int n_tokens;
};

TEST(ChunkKernels, SoftmaxOverTwoChunksEqualsOneOverBoth) {
  std::mt19937 random(6);
  std::normal_distribution<float> gauss(0, 4);
  for (const SoftmaxCase& c :
       {SoftmaxCase{0, false, 64}, {0, true, 64}, {5, true, 64}, {0, false, 21}, {5, true, 33}}) {
    constexpr float kScale = 0.3F;
    constexpr float kSlope = 0.7F;
    std::vector<float> input(std::size_t{2} * kChunkTokens);
    for (float& value : input) value = gauss(random);
    Guarded<float> bias(kChunkTokens);
    for (std::size_t i = 0; i < kChunkTokens; ++i) {
      bias.data()[i] = i % 3 == 1 ? kMinusInfinity : -static_cast<float>(i) / 8;
    }
    // The second chunk ends early, as the last chunk of a cache may.
    const std::size_t n_second = static_cast<std::size_t>(c.n_tokens);
    std::vector<double> scores;
    for (std::size_t i = 0; i < kChunkTokens + n_second; ++i) {
      auto score = static_cast<double>(kScale) * static_cast<double>(input[i]);
      if (c.softcap != 0) score = static_cast<double>(c.softcap) * std::tanh(score);
      if (c.masked) score += static_cast<double>(kSlope * bias.data()[i % kChunkTokens]);
      scores.push_back(score);
    }
    const double largest = *std::ranges::max_element(scores);
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);

    on_every_target([&] {
      SoftmaxInput one(1);
      one.work.value_scales = nullptr;
      one.work.n_value_parts = 0;
      one.work.scale = kScale;
      one.work.softcap = c.softcap;
      one.slope = kSlope;
      one.bias = c.masked ? bias.data() : nullptr;
      std::ranges::copy(std::span(input).first(kChunkTokens), one.scores.data());
      softmax_chunk(one.work);
      EXPECT_EQ(one.rescale, 0);
      std::vector<float> weights(one.scores.span().begin(), one.scores.span().end());
      one.work.n_tokens = c.n_tokens;
      std::ranges::copy(std::span(input).last(kChunkTokens), one.scores.data());
      softmax_chunk(one.work);
      for (float& weight : weights) weight *= one.rescale;
      weights.insert(weights.end(), one.scores.span().begin(), one.scores.span().end());
      EXPECT_NEAR(one.sum(), sum, 2e-6 * sum);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const double expected = i < scores.size() ? scores[i] : 0;
        EXPECT_NEAR(weights[i], expected, 2e-6) << i;
        EXPECT_EQ(weights[i] == 0, expected == 0) << i;
      }
    });
  }
}

TEST(ChunkKernels, SoftmaxOfAHiddenChunkAddsNothing) {
  const std::vector<float> hidden(kChunkTokens, kMinusInfinity);
  on_every_target([&] {
    SoftmaxInput one(1);
    one.bias = hidden.data();
    softmax_chunk(one.work);
    EXPECT_EQ(one.sum(), 0);
    EXPECT_EQ(one.rescale, 1);
    EXPECT_EQ(one.max, kMinusInfinity);
    for (std::size_t i = 0; i < kChunkTokens; ++i) EXPECT_EQ(one.weights.data()[i], 0);
  });
}

// One large weight and many that are each less than half a step: their sum is kept.
TEST(ChunkKernels, RoundedWeightsKeepTheirSum) {
  for (const int digits : {1, 2}) {
    on_every_target([&] {
      SoftmaxInput one(digits);
      std::ranges::fill(one.value_scales.span(), 2.0F);
      std::ranges::fill(one.scores.span(), std::log(0.0015F));
      one.scores.data()[0] = 0;
      softmax_chunk(one.work);
      double sum = 0;
      for (std::size_t i = 0; i < kChunkTokens; ++i) sum += one.weight(i);
      EXPECT_NEAR(one.weight(0), 2, 0.02);
      // Each of the 16 slots keeps its own sum, to within half a step.
      const double expected = 2 * (1 + 63 * 0.0015);
      EXPECT_NEAR(sum, expected, digits == 1 ? 16 * 0.5 * 2.0 / 254 : 64 * 0.5 * 2.0 / 65535);
      EXPECT_GT(sum, digits == 1 ? 2.1 : expected - 0.001);
    });
  }
}

// Half a step carried to the largest weight does not overflow its byte.
TEST(ChunkKernels, CarriedRoundingsDoNotOverflow) {
  on_every_target([&] {
    SoftmaxInput one(1);
    std::ranges::fill(one.scores.span(), std::log(0.499F / 254));
    for (std::size_t i = kTileTokens; i < kChunkTokens; ++i) one.scores.data()[i] = 0;
    softmax_chunk(one.work);
    for (std::size_t i = kTileTokens; i < kChunkTokens; ++i) EXPECT_NEAR(one.weight(i), 1, 0.005);
  });
}

// A rounding upwards, carried to a weight of 0, does not make it negative.
TEST(ChunkKernels, CarriedRoundingsDoNotBecomeNegative) {
  on_every_target([&] {
    SoftmaxInput one(1);
    std::ranges::fill(one.scores.span(), -1000.0F);
    one.scores.data()[0] = 0;
    one.scores.data()[1] = std::log(0.6F / 254);
    softmax_chunk(one.work);
    EXPECT_EQ(one.weights.data()[0], 254);
    EXPECT_EQ(one.weights.data()[1], 1);
    for (std::size_t i = 2; i < kChunkTokens; ++i) EXPECT_EQ(one.weights.data()[i], 0) << i;
  });
}

TEST(ChunkKernels, TokensBehindTheEndHaveNoWeight) {
  on_every_target([&] {
    SoftmaxInput one(2);
    one.work.n_tokens = 7;
    softmax_chunk(one.work);
    EXPECT_EQ(one.sum(), 7);
    for (std::size_t i = 0; i < kChunkTokens; ++i) {
      EXPECT_EQ(one.weights.data()[i], i < 7 ? 255 : 0);
      EXPECT_EQ(one.weights.data()[kChunkTokens + i], i < 7 ? 255 : 0);
    }
  });
}

TEST(ChunkKernels, WeightedSumsAreAddedToTheRescaledOutput) {
  for (const int digits : {1, 2}) {
    constexpr std::size_t kChannels = 80;
    Guarded<std::int32_t> sums(kChannels * static_cast<std::size_t>(digits));
    std::iota(sums.span().begin(), sums.span().end(), -50);
    const float scale = 0.25F;
    const float rescale = 0.5F;
    on_every_target([&] {
      Guarded<float> output(kChannels);
      std::ranges::fill(output.span(), 8.0F);
      accumulate_output({.sums = sums.data(),
                         .sum_stride = kChannels,
                         .n_digits = digits,
                         .n_channels = kChannels,
                         .weight_scales = &scale,
                         .rescale = &rescale,
                         .n_queries = 1,
                         .output = output.data(),
                         .output_stride = kChannels});
      for (std::size_t i = 0; i < kChannels; ++i) {
        const std::int32_t sum =
            digits == 1 ? sums.data()[i] : sums.data()[i] * 256 + sums.data()[kChannels + i];
        EXPECT_FLOAT_EQ(output.data()[i], 4 + scale * static_cast<float>(sum));
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
    accumulate_plain(rows.data(), kStride, kTokens, scores.data(), 0.5F, kDim, output.data());
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
