// The kernels for queries give what the plain loops give, on every instruction set.
#include "device/attention/query_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "device/attention/chunk_kernels.h"
#include "device/kernel_test_support.h"

namespace slipstream::turbo {
namespace {

// A vector that ends at unreadable pages.
struct GuardedQuery : Guarded<float> {
  GuardedQuery(std::size_t n, unsigned seed) : Guarded<float>(n) {
    std::mt19937 random(seed);
    std::normal_distribution<float> gauss;
    for (float& number : span()) number = gauss(random);
  }
};

float plain_peak(std::span<const float> vector) {
  float peak = 0;
  for (const float number : vector) peak = std::max(peak, std::abs(number));
  return peak;
}

TEST(QueryKernels, FindThePeak) {
  for (const std::size_t n : {16, 48, 256}) {
    GuardedQuery vector(n, 1);
    const float peak = plain_peak(vector.span());
    on_every_target([&] {
      EXPECT_EQ(peak_of(vector.span()), peak);
      for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
        for (const std::size_t at : {std::size_t{0}, n - 1}) {
          const float kept = std::exchange(vector.span()[at], bad);
          EXPECT_TRUE(std::isinf(peak_of(vector.span())));
          vector.span()[at] = kept;
        }
      }
    });
  }
}

TEST(QueryKernels, Multiply) {
  GuardedQuery a(112, 2);
  GuardedQuery b(112, 3);
  const double sum = std::inner_product(a.span().begin(), a.span().end(), b.span().begin(), 0.0);
  on_every_target([&] { EXPECT_NEAR(dot_channels(a.span(), b.span()), sum, 1e-4); });
}

TEST(QueryKernels, QuantiseToOneDigitOrTwo) {
  for (const std::size_t n : {16, 80, 256}) {
    GuardedQuery vector(n, 4);
    const float peak = plain_peak(vector.span());
    on_every_target([&] {
      for (const bool two : {false, true}) {
        const float per_step = (two ? kQueryMax2 : kQueryMax1) / peak;
        Guarded<std::int8_t> high(n);
        Guarded<std::int8_t> low(n);
        const std::int32_t sum =
            two ? quantise_digits(vector.span(), per_step, high.data(), low.data())
                : quantise_digit(vector.span(), per_step, high.data());
        std::int32_t expected_sum = 0;
        for (std::size_t c = 0; c < n; ++c) {
          const auto steps = static_cast<int>(std::nearbyint(vector.span()[c] * per_step));
          expected_sum += steps;
          EXPECT_EQ(two ? (high.data()[c] << kQueryDigitShift) + low.data()[c] : high.data()[c],
                    steps);
        }
        EXPECT_EQ(sum, expected_sum);
      }
    });
  }
}

}  // namespace
}  // namespace slipstream::turbo
