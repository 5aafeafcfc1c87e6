#include "bench/quality/cache_rows.h"

#include <ggml.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace slipstream::quality {
namespace {

constexpr int kTokens = 64;
constexpr std::size_t kChannels = 32;

// Rows that vary around an offset.
std::vector<float> make_rows(float offset) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> rows(kTokens * kChannels);
  for (float& value : rows) value = offset + normal(random);
  return rows;
}

std::vector<std::uint16_t> as_halves(const std::vector<float>& rows) {
  std::vector<std::uint16_t> halves(rows.size());
  ggml_fp32_to_fp16_row(rows.data(), halves.data(), static_cast<std::int64_t>(rows.size()));
  return halves;
}

RowFigures compare(const std::vector<float>& base, const std::vector<float>& found) {
  return compare_layer(as_halves(base), as_halves(found), kChannels);
}

TEST(CacheRows, AnErrorOfATenthIsNoLoss) {
  const std::vector<float> base = make_rows(0);
  std::vector<float> found = base;
  std::mt19937 random(4);
  std::normal_distribution<float> noise(0, 0.32F);
  for (float& value : found) value += noise(random);
  const RowFigures figures = compare(base, found);
  EXPECT_EQ(figures.n_rows, kTokens);
  EXPECT_NEAR(figures.error_mean, 0.1, 0.02);
  EXPECT_EQ(figures.n_lost, 0);
}

// A remaining offset must not hide that the rest is gone.
TEST(CacheRows, AreLostWhereOnlyTheOffsetIsLeft) {
  const std::vector<float> base = make_rows(40);
  std::vector<float> found = base;
  for (std::size_t i = 16 * kChannels; i < 32 * kChannels; ++i) found[i] = 40;
  const RowFigures figures = compare(base, found);
  EXPECT_EQ(figures.n_lost, 16);
  EXPECT_EQ(figures.first_lost, 16);
}

TEST(CacheRows, AreLostWhereAnotherTokensAre) {
  const std::vector<float> base = make_rows(0);
  std::vector<float> found = base;
  for (std::size_t i = 0; i < 8 * kChannels; ++i) found[i] = base[i + 8 * kChannels];
  EXPECT_EQ(compare(base, found).n_lost, 8);
}

}  // namespace
}  // namespace slipstream::quality
