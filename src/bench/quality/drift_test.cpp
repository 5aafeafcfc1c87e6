#include "bench/quality/drift.h"

#include <gtest/gtest.h>

namespace slipstream::quality {
namespace {

TEST(Drift, CountsTheTokensBeforeTheFirstThatDiffers) {
  const Tokens base = {1, 2, 3, 4};
  EXPECT_EQ(first_difference(base, Tokens{1, 2, 9, 4}), 2);
  EXPECT_EQ(first_difference(base, Tokens{9, 2, 3, 4}), 0);
  EXPECT_EQ(first_difference(base, base), 4);
  EXPECT_EQ(first_difference(base, Tokens{1, 2}), 2);  // it ended early
}

TEST(Drift, MedianOfOddAndEvenNumbers) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 3}), 3);
  EXPECT_EQ(median({9, 1, 3, 4}), 3.5);
}

}  // namespace
}  // namespace slipstream::quality
