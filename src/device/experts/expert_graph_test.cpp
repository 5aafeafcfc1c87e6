#include "device/experts/expert_graph.h"

#include <gtest/gtest.h>

namespace slipstream::turbo {
namespace {

TEST(LikelyExperts, AreTheLargestOfEachTokenOnce) {
  const std::vector<float> logits = {0, 3, 1, 2,   // 1 and 3
                                     9, 0, 0, 8};  // 0 and 3
  EXPECT_EQ(likely_experts(logits, 4, 2), (std::vector<int>{1, 3, 0}));
}

// Layers may have different numbers of experts, and the choices of one are more than another has.
TEST(LikelyExperts, AreNotMoreThanThereAre) {
  const std::vector<float> logits = {0, 3, 1, 9, 0, 8};
  EXPECT_EQ(likely_experts(logits, 3, 8), (std::vector<int>{1, 2, 0}));
}

}  // namespace
}  // namespace slipstream::turbo
