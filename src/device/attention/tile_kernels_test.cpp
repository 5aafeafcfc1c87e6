// Every instruction set that this machine has gives what the scalar reference gives.
#include "device/attention/tile_kernels.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "device/attention/tile_kernels_ref.h"
#include "device/codec/f16.h"

namespace slipstream::turbo {
namespace {

// Memory that ends where an unreadable page begins: reading one byte too many is a crash.
class Guarded {
 public:
  explicit Guarded(std::size_t n_bytes) : n_bytes_(n_bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    mapped_ = (n_bytes + page - 1) / page * page + page;
    start_ = static_cast<std::uint8_t*>(
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(start_ + mapped_ - page, page, PROT_NONE);
    end_ = start_ + mapped_ - page;
  }
  ~Guarded() { ::munmap(start_, mapped_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(end_ - n_bytes_), n_bytes_ / sizeof(T)};
  }

 private:
  std::size_t n_bytes_;
  std::size_t mapped_ = 0;
  std::uint8_t* start_ = nullptr;
  std::uint8_t* end_ = nullptr;
};

// Calls `test` once with each instruction set enabled alone.
template <typename Test>
void on_every_target(const Test& test) {
  for (std::int64_t targets = hwy::SupportedTargets(); targets != 0; targets &= targets - 1) {
    const std::int64_t target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    test();
    hwy::SetSupportedTargetsForTest(0);
  }
}

class TileKernels : public testing::TestWithParam<std::tuple<Side, int, int>> {};

TEST_P(TileKernels, ExpandAsTheReferenceDoes) {
  const auto [side, bits, head_dim] = GetParam();
  const TileLayout layout(side, bits, head_dim);
  std::mt19937 random(3);
  Guarded code_memory(layout.code_bytes());
  const auto n = static_cast<std::size_t>(n_scales(side, bits, head_dim) * kTileTokens);
  Guarded scale_memory(n * sizeof(std::uint16_t));
  Guarded tile_memory(static_cast<std::size_t>(head_dim * kTileTokens) * sizeof(float));
  const std::span codes = code_memory.as<std::uint8_t>();
  const std::span scales = scale_memory.as<std::uint16_t>();
  const std::span tile = tile_memory.as<float>();
  for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random());
  for (std::uint16_t& scale : scales)
    scale = float_to_f16(0.01F * static_cast<float>(random() % 100));

  std::vector<float> expected(tile.size());
  ref::expand_tile(side, bits, codes, scales, expected);
  on_every_target([&] {
    std::ranges::fill(tile, std::numeric_limits<float>::quiet_NaN());
    expand_tile(side, bits, codes, scales, tile);
    for (std::size_t i = 0; i < tile.size(); ++i) ASSERT_EQ(tile[i], expected[i]) << "at " << i;
  });
}

INSTANTIATE_TEST_SUITE_P(All, TileKernels,
                         testing::Combine(testing::Values(Side::kKey, Side::kValue),
                                          testing::Values(2, 3, 4, 8),
                                          testing::Values(16, 64, 80, 96, 128, 192, 256)));

TEST(TileKernelsMath, ScoreAndAccumulateAsTheReferenceDoes) {
  std::mt19937 random(5);
  std::normal_distribution<float> gauss;
  for (const std::size_t head_dim : {16U, 64U, 80U, 96U, 128U, 256U}) {
    Guarded tile_memory(head_dim * kTileTokens * sizeof(float));
    Guarded query_memory(head_dim * sizeof(float));
    const std::span tile = tile_memory.as<float>();
    const std::span query = query_memory.as<float>();
    for (float& value : tile) value = gauss(random);
    for (float& value : query) value = gauss(random);
    std::array<float, kTileTokens> weights{};
    for (float& value : weights) value = gauss(random);

    std::array<float, kTileTokens> expected_scores{};
    ref::score_tile(query, tile, expected_scores);
    std::vector<float> expected_output(query.begin(), query.end());
    ref::accumulate_tile(weights, tile, expected_output);
    on_every_target([&] {
      std::array<float, kTileTokens> scores{};
      score_tile(query, tile, scores);
      for (std::size_t i = 0; i < scores.size(); ++i) {
        EXPECT_NEAR(scores[i], expected_scores[i], 1e-4);
      }
      std::vector<float> output(query.begin(), query.end());
      accumulate_tile(weights, tile, output);
      for (std::size_t i = 0; i < output.size(); ++i) {
        EXPECT_NEAR(output[i], expected_output[i], 1e-4);
      }
    });
  }
}

TEST(TileKernelsMath, ExponentialOfMaskedAndVerySmallIsZero) {
  on_every_target([&] {
    std::array<float, kTileTokens> x{};
    x.fill(-std::numeric_limits<float>::infinity());
    x[0] = 3;
    x[1] = 2;
    x[2] = -1000;
    const float sum = exp_tile(x, 3);
    EXPECT_FLOAT_EQ(x[0], 1);
    EXPECT_NEAR(x[1], std::exp(-1.0F), 1e-6);
    EXPECT_EQ(x[2], 0);
    EXPECT_EQ(x[15], 0);
    EXPECT_NEAR(sum, 1 + std::exp(-1.0F), 1e-6);
  });
}

}  // namespace
}  // namespace slipstream::turbo
