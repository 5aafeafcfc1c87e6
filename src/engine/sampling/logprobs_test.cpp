#include "engine/sampling/logprobs.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/sampling/not_finite.h"

namespace slipstream {
namespace {

TEST(Logprobs, AreThoseOfASoftmax) {
  const std::vector<float> logits = {0, std::log(2.F), std::log(4.F), std::log(3.F)};
  const TokenLogprobs logprobs = *logprobs_of(logits, 1, 3);
  EXPECT_FLOAT_EQ(logprobs.logprob, std::log(0.2F));
  ASSERT_EQ(logprobs.top.size(), 3U);
  EXPECT_EQ(logprobs.top[0].token, 2);
  EXPECT_FLOAT_EQ(logprobs.top[0].logprob, std::log(0.4F));
  EXPECT_EQ(logprobs.top[1].token, 3);
  EXPECT_EQ(logprobs.top[2].token, 1);
  EXPECT_TRUE(logprobs_of(logits, 0, 0)->top.empty());
  EXPECT_EQ(logprobs_of(logits, 0, 100)->top.size(), 4U) << "as many as there are";
}

TEST(Logprobs, EqualOnesComeInTheOrderOfTheirIds) {
  const std::vector<float> logits = {1, 5, 5, 1, 5};
  const TokenLogprobs logprobs = *logprobs_of(logits, 0, 4);
  std::vector<Token> tokens;
  for (const TokenLogprob& entry : logprobs.top) tokens.push_back(entry.token);
  EXPECT_EQ(tokens, (std::vector<Token>{1, 2, 4, 0}));
}

TEST(Logprobs, AreFiniteForLargeLogits) {
  const std::vector<float> logits = {1e30F, -1e30F, 1e30F};
  EXPECT_FLOAT_EQ(logprobs_of(logits, 0, 0)->logprob, std::log(0.5F));
  EXPECT_EQ(logprobs_of(std::vector<float>{0, -kInfinity}, 1, 0)->logprob, -kInfinity);
}

TEST(Logprobs, RefuseLogitsThatAreNone) {
  EXPECT_EQ(logprobs_of(std::vector<float>{0, kNan}, 0, 0).error().message,
            "the model computed scores that are not numbers");
  EXPECT_EQ(logprobs_of(std::vector<float>{kNan, 0}, 0, 0).error().code, Code::kCorrupt);
  EXPECT_EQ(logprobs_of(std::vector<float>{0, kInfinity}, 0, 0).error().message,
            "the model computed an infinite score");
  EXPECT_EQ(logprobs_of(std::vector<float>{-kInfinity}, 0, 0).error().message,
            "the model ruled out every token");
}

RC_GTEST_PROP(Logprobs, EqualADoublePrecisionOracle, ()) {
  const auto thousandths =
      *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-50'000, 50'000)));
  std::vector<float> logits;
  for (const int value : thousandths) logits.push_back(static_cast<float>(value) / 1000);
  const int n_top = *rc::gen::inRange(0, 20);
  const auto actual = *rc::gen::inRange(0, static_cast<int>(logits.size()));

  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  const auto expected = [&](Token token) {
    return static_cast<double>(logits[static_cast<std::size_t>(token)] - std::log(sum));
  };
  const TokenLogprobs logprobs = *logprobs_of(logits, actual, n_top);
  RC_ASSERT(std::abs(logprobs.logprob - expected(actual)) < 1e-5);
  std::vector<Token> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<Token>(i);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](Token token) { return logits[static_cast<std::size_t>(token)]; });
  order.resize(std::min(order.size(), static_cast<std::size_t>(n_top)));
  RC_ASSERT(logprobs.top.size() == order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    RC_ASSERT(logprobs.top[i].token == order[i]);
    RC_ASSERT(std::abs(logprobs.top[i].logprob - expected(order[i])) < 1e-5);
  }
}

}  // namespace
}  // namespace slipstream
