#include "policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <random>

#include "tri_score.h"

namespace slipstream::evictions {
namespace {

constexpr AttentionShape kShape{
    .n_layers = 2, .n_heads = 4, .n_kv_heads = 2, .n_channels = 8, .rope_base = 100};
constexpr std::size_t kCells = 400;
constexpr std::size_t kBudget = 200;
constexpr std::array kAllPolicies = {Policy::kRecency, Policy::kRandom, Policy::kMass,
                                     Policy::kWindow, Policy::kTri};

AttentionRecord random_record() {
  AttentionRecord record(kShape, kCells);
  std::mt19937 random(1);
  const auto fill = [&](auto& numbers) {
    for (auto& number : numbers) number = static_cast<float>(random() % 2000) / 1000 - 1;
  };
  fill(record.mass);
  fill(record.window);
  fill(record.keys);
  fill(record.query_sums);
  for (double& sum : record.query_sums) sum *= kCells;
  for (double& length : record.query_lengths) length = 2.0 * kCells;
  return record;
}

std::size_t n_kept_of(const std::vector<bool>& is_kept) {
  return static_cast<std::size_t>(std::ranges::count(is_kept, true));
}

TEST(EvictionPolicy, KeepsTheBudgetTheFirstTokensAndTheLast) {
  const AttentionRecord record = random_record();
  for (const Policy policy : kAllPolicies) {
    for (const Unit unit : {Unit::kCell, Unit::kHead}) {
      const Kept kept = keep(policy, unit, record, kBudget, 1);
      ASSERT_EQ(kept.size(), kShape.n_keeping());
      for (const std::vector<bool>& is_kept : kept) {
        ASSERT_EQ(is_kept.size(), kCells);
        EXPECT_EQ(n_kept_of(is_kept), kBudget) << name_of(policy);
        EXPECT_EQ(std::count(is_kept.begin(), is_kept.begin() + kSinkTokens, true), kSinkTokens);
        EXPECT_EQ(std::count(is_kept.end() - kLastTokens, is_kept.end(), true), kLastTokens);
        if (unit == Unit::kCell) {
          EXPECT_EQ(is_kept, kept.front()) << name_of(policy);
        }
      }
    }
  }
}

TEST(EvictionPolicy, NamesAndPoliciesBelongTogether) {
  for (const Policy policy : kAllPolicies) EXPECT_EQ(policy_of(name_of(policy)), policy);
  EXPECT_EQ(policy_of("best"), std::nullopt);
}

TEST(EvictionPolicy, RecencyKeepsTheEnd) {
  const Kept kept = keep(Policy::kRecency, Unit::kCell, random_record(), kBudget, 1);
  const auto n_last = static_cast<std::ptrdiff_t>(kBudget - kSinkTokens);
  EXPECT_EQ(std::count(kept[0].end() - n_last, kept[0].end(), true), n_last);
}

TEST(EvictionPolicy, RandomDependsOnItsSeedOnly) {
  const AttentionRecord record = random_record();
  EXPECT_EQ(keep(Policy::kRandom, Unit::kCell, record, kBudget, 1),
            keep(Policy::kRandom, Unit::kCell, AttentionRecord(kShape, kCells), kBudget, 1));
  EXPECT_NE(keep(Policy::kRandom, Unit::kCell, record, kBudget, 1),
            keep(Policy::kRandom, Unit::kCell, record, kBudget, 2));
}

TEST(EvictionPolicy, MassKeepsWhatGotMost) {
  AttentionRecord record(kShape, kCells);
  record.row(record.mass, 1, 3)[77] = 1;  // of the last layer's second KV head
  const Kept cells = keep(Policy::kMass, Unit::kCell, record, kBudget, 1);
  const Kept heads = keep(Policy::kMass, Unit::kHead, record, kBudget, 1);
  EXPECT_TRUE(cells[0][77]);
  EXPECT_TRUE(heads[3][77]);
  EXPECT_FALSE(heads[2][77]);
  const auto half = static_cast<std::ptrdiff_t>(kBudget / 2);
  EXPECT_EQ(std::count(cells[0].end() - half, cells[0].end(), true), half);
}

TEST(EvictionPolicy, WindowKeepsNeighbours) {
  AttentionRecord record(kShape, kCells);
  record.row(record.window, 0, 0)[77] = 1;
  const Kept kept = keep(Policy::kWindow, Unit::kHead, record, kBudget, 1);
  for (std::size_t cell = 74; cell <= 80; ++cell) EXPECT_TRUE(kept[0][cell]) << cell;
  EXPECT_FALSE(kept[0][73]);
  EXPECT_FALSE(kept[1][77]);
}

// The definition, distance by distance.
double naive_tri_score(const AttentionRecord& record, std::size_t layer, std::size_t head,
                       std::size_t cell) {
  using Complex = std::complex<double>;
  const std::size_t n_pairs = kShape.n_channels / 2;
  const std::span<const float> key = record.key(layer, head / 2, cell);
  double sum = 0;
  int n_distances = 0;
  for (int after = 1; after <= 65536; after *= 2, ++n_distances) {
    const double distance = static_cast<double>(kCells - cell) + after;
    for (std::size_t pair = 0; pair < n_pairs; ++pair) {
      const std::size_t at = layer * kShape.n_heads + head;
      const Complex q(record.query_sums[at * 8 + pair] / kCells,
                      record.query_sums[at * 8 + pair + n_pairs] / kCells);
      const Complex k(key[pair], key[pair + n_pairs]);
      const double speed = std::pow(kShape.rope_base, -static_cast<double>(pair) / 4);
      const double turn = speed * distance + std::arg(q) - std::arg(k);
      sum += std::abs(q) * std::abs(k) * std::cos(turn);
      sum += (record.query_lengths[at * n_pairs + pair] / kCells - std::abs(q)) * std::abs(k);
    }
  }
  return sum / n_distances;
}

TEST(TriScore, IsItsDefinition) {
  const AttentionRecord record = random_record();
  for (std::size_t cell = 0; cell < kCells; cell += 37) {
    for (const std::size_t head : {0U, 3U}) {
      EXPECT_NEAR(tri_score(record, 1, head, cell), naive_tri_score(record, 1, head, cell), 1e-6);
    }
  }
}

TEST(TriScore, IsNormalisedForEachHead) {
  const auto scores = tri_scores(random_record());
  ASSERT_EQ(scores.size(), kShape.n_layers * kShape.n_heads);
  for (const std::vector<float>& row : scores) {
    double sum = 0;
    double squares = 0;
    for (const double score : row) {
      sum += score;
      squares += score * score;
    }
    EXPECT_NEAR(sum / kCells, 0, 1e-4);
    EXPECT_NEAR(squares / kCells, 1, 1e-3);
  }
}

}  // namespace
}  // namespace slipstream::evictions
