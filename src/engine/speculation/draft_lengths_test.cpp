#include "engine/speculation/draft_lengths.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace slipstream {
namespace {

// A step takes this much longer with each drafted token.
auto each_costs(double more) {
  return [more](std::span<const int> lengths) {
    return 1 + more * std::reduce(lengths.begin(), lengths.end());
  };
}

std::vector<double> certain(std::size_t n, double chance) {
  std::vector<double> chances;
  for (double all = chance; chances.size() < n; all *= chance) chances.push_back(all);
  return chances;
}

int one(const std::vector<double>& chances, double more, int n_max = 15) {
  return draft_lengths(std::span(&chances, 1), each_costs(more), n_max).at(0);
}

TEST(DraftLengths, NothingWherePayingIsUnlikely) {
  EXPECT_EQ(one({}, 0), 0);
  EXPECT_EQ(one(certain(8, 0.3), 0.5), 0);
  EXPECT_EQ(one(certain(8, 0.02), 0), 0) << "within the error";
}

TEST(DraftLengths, LongWhereTokensAreCertainAndCheap) {
  EXPECT_EQ(one(certain(8, 1), 0.05), 8);
  EXPECT_EQ(one(certain(15, 1), 0), 15);
  const int length = one(certain(15, 0.6), 0.1);
  EXPECT_GT(length, 0);
  EXPECT_LT(length, 6);
}

TEST(DraftLengths, NoMoreThanThereIsRoomFor) {
  EXPECT_EQ(one(certain(8, 1), 0, 3), 3);
  EXPECT_EQ(one(certain(8, 1), 0, 0), 0);
  EXPECT_TRUE(draft_lengths({}, each_costs(0), 8).empty());
}

TEST(DraftLengths, TakesTheTokensOfThoseWhoGain) {
  const std::vector<std::vector<double>> chances = {certain(4, 0.05), certain(4, 0.95), {}};
  const std::vector<int> lengths = draft_lengths(chances, each_costs(0.01), 15);
  EXPECT_EQ(lengths.at(0), 0);
  EXPECT_EQ(lengths.at(1), 4);
  EXPECT_EQ(lengths.at(2), 0);
}

TEST(DraftLengths, OneThatGainsDoesNotSlowDownManyOthers) {
  std::vector<std::vector<double>> chances(8);
  chances[3] = certain(3, 0.9);
  EXPECT_EQ(draft_lengths(chances, each_costs(0.01), 15).at(3), 3);
  EXPECT_EQ(draft_lengths(chances, each_costs(0.2), 15).at(3), 0);
  EXPECT_GT(one(certain(3, 0.9), 0.2), 0) << "alone it would";
}

// As of a draft model: a round costs the same for one and for all.
TEST(DraftLengths, TheLongestDraftMayBeWhatCosts) {
  const std::vector<std::vector<double>> chances(4, certain(8, 0.7));
  const auto rounds_cost = [](double each) {
    return [each](std::span<const int> lengths) { return 1 + each * std::ranges::max(lengths); };
  };
  const std::vector<int> lengths = draft_lengths(chances, rounds_cost(0.15), 32);
  EXPECT_EQ(std::ranges::min(lengths), std::ranges::max(lengths));
  EXPECT_GT(lengths[0], 0);
  EXPECT_EQ(draft_lengths(chances, rounds_cost(0.8), 32), std::vector<int>(4));
}

TEST(DraftLengths, TheLongestGiveUpWhatIsTooMuch) {
  EXPECT_EQ(shortened({5, 2, 3}, 10), (std::vector<int>{5, 2, 3}));
  EXPECT_EQ(shortened({5, 2, 3}, 7), (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(shortened({4, 4, 4}, 1), (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(shortened({4, 4}, 0), (std::vector<int>{0, 0}));
}

// What is chosen is as good as any other choice of as many tokens.
RC_GTEST_PROP(DraftLengthsProperty, NoOtherChoiceOfTwoIsBetter, (double p, double q)) {
  const double a = std::abs(p) - std::floor(std::abs(p));
  const double b = std::abs(q) - std::floor(std::abs(q));
  const std::vector<std::vector<double>> chances = {certain(6, a), certain(6, b)};
  const auto cost = each_costs(*rc::gen::inRange(0, 40) / 100.0);
  const auto value = [&](int n, int m) {
    const auto expected = [](const std::vector<double>& c, int k) {
      return 1 + std::accumulate(c.begin(), c.begin() + k, 0.0);
    };
    return std::log(expected(chances[0], n)) + std::log(expected(chances[1], m)) -
           2 * std::log(cost(std::array{n, m}));
  };
  const std::vector<int> lengths = draft_lengths(chances, cost, 12);
  const int total = lengths[0] + lengths[1];
  for (int n = std::max(0, total - 6); n <= std::min(total, 6); ++n) {
    RC_ASSERT(value(lengths[0], lengths[1]) >= value(n, total - n) - 1e-9);
  }
  RC_ASSERT(value(lengths[0], lengths[1]) >= 0);
}

}  // namespace
}  // namespace slipstream
