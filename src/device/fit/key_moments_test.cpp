#include "device/fit/key_moments.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace slipstream::turbo {
namespace {

constexpr int kMomentsDim = 5;

TEST(KeyMoments, AreThoseOfANaiveLoop) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.5F);
  KeyMoments moments(2, kMomentsDim);
  std::vector<double> sum(kMomentsDim);
  std::vector<double> second(kMomentsDim * kMomentsDim);
  std::vector<double> of_queries(kMomentsDim * kMomentsDim);
  for (const std::size_t n : {std::size_t{1}, std::size_t{7}, std::size_t{0}, std::size_t{100}}) {
    std::vector<float> keys(n * kMomentsDim);
    std::vector<float> queries(2 * n * kMomentsDim);
    for (float& number : keys) number = normal(random);
    for (float& number : queries) number = normal(random);
    moments.add_keys(1, keys);
    moments.add_queries(1, queries);
    for (std::size_t i = 0; i < 2 * n; ++i) {
      for (std::size_t a = 0; a < kMomentsDim; ++a) {
        if (i < n) sum[a] += double{keys[i * kMomentsDim + a]};
        for (std::size_t b = 0; b < kMomentsDim; ++b) {
          const auto product = [&](const std::vector<float>& from) {
            return double{from[i * kMomentsDim + a]} * double{from[i * kMomentsDim + b]};
          };
          if (i < n) second[a * kMomentsDim + b] += product(keys);
          of_queries[a * kMomentsDim + b] += product(queries);
        }
      }
    }
  }
  const HeadMoments head = moments.head(1);
  EXPECT_EQ(head.n_keys, 108);
  EXPECT_EQ(head.n_queries, 216);
  for (int a = 0; a < kMomentsDim; ++a) {
    EXPECT_NEAR(head.key_sum[a], sum[static_cast<std::size_t>(a)], 1e-9);
    for (int b = 0; b < kMomentsDim; ++b) {
      const auto at = static_cast<std::size_t>(a * kMomentsDim + b);
      EXPECT_NEAR(head.key_second(a, b), second[at], 1e-9);
      EXPECT_NEAR(head.query_second(a, b), of_queries[at], 1e-9);
    }
  }
  EXPECT_EQ(moments.head(0).n_keys, 0);
}

TEST(KeyMoments, LeaveOutWhatIsNotFinite) {
  KeyMoments moments(1, 2);
  const float infinite = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  moments.add_keys(0, std::vector{1.0F, 2.0F, nan, 1.0F, 3.0F, infinite, 5.0F, 6.0F});
  moments.add_queries(0, std::vector{nan, nan});
  const HeadMoments head = moments.head(0);
  EXPECT_EQ(head.n_keys, 2);
  EXPECT_EQ(head.key_sum, Eigen::Vector2d(6, 8));
  EXPECT_EQ(head.n_queries, 0);
  EXPECT_TRUE(head.query_second.isZero());
}

}  // namespace
}  // namespace slipstream::turbo
