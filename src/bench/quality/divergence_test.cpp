#include "bench/quality/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "bench/quality/scored_text.h"

namespace slipstream::quality {
namespace {

using Floats = std::vector<float>;

Floats random_logits(std::mt19937& random, std::size_t n, float spread) {
  std::normal_distribution<float> normal(0, spread);
  Floats logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::vector<double> softmax(const Floats& logits) {
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) {
    p.push_back(std::exp(static_cast<double>(logit)));
    sum += p.back();
  }
  for (double& one : p) one /= sum;
  return p;
}

std::vector<std::uint16_t> row_of(const Floats& logits) {
  std::vector<std::uint16_t> row(row_codes(logits.size()));
  EXPECT_TRUE(encode_log_probs(logits, row));
  return row;
}

TEST(LogProbs, AreKeptWithinHalfAStep) {
  std::mt19937 random(1);
  const Floats logits = random_logits(random, 1000, 2);
  const std::vector<std::uint16_t> row = row_of(logits);
  const LogProbsView view(row);
  const std::vector<double> p = softmax(logits);
  for (std::size_t i = 0; i < p.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(view[i]), std::log(p[i]), 0.00013);
  }
}

TEST(LogProbs, FarBelowTheHighestAreTheLowest) {
  const std::vector<std::uint16_t> row = row_of({0, -5, -20, -40});
  const LogProbsView view(row);
  EXPECT_NEAR(static_cast<double>(view[1]), -5, 0.01);
  EXPECT_EQ(view[2], view[3]);
  EXPECT_NEAR(static_cast<double>(view[3]), -16, 0.01);
}

TEST(LogProbs, OfOneLogitAlone) {
  const std::vector<std::uint16_t> row = row_of({3});
  EXPECT_EQ(LogProbsView(row)[0], 0);
}

TEST(LogProbs, BrokenLogitsAreRefused) {
  std::vector<std::uint16_t> row(row_codes(2));
  const Floats logits = {0, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(encode_log_probs(logits, row).error().code, Code::kCorrupt);
}

TEST(Divergence, IsTheTextbooksFormula) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 20; ++trial) {
    const Floats base = random_logits(random, 500, 2);
    Floats other = base;
    for (float& logit : other) logit += random_logits(random, 1, 0.5F).front();
    const std::vector<std::uint16_t> row = row_of(base);
    const Result<TokenDivergence> found = compare(other, LogProbsView(row), 7);
    ASSERT_TRUE(found);
    const std::vector<double> p = softmax(base);
    const std::vector<double> q = softmax(other);
    double kl = 0;
    for (std::size_t i = 0; i < p.size(); ++i) kl += p[i] * std::log(p[i] / q[i]);
    EXPECT_NEAR(static_cast<double>(found->kl), kl, 0.0002);
    EXPECT_NEAR(static_cast<double>(found->nll), -std::log(q[7]), 0.0002);
    EXPECT_NEAR(static_cast<double>(found->nll_base), -std::log(p[7]), 0.0002);
    EXPECT_EQ(found->same_top, std::ranges::max_element(base) - base.begin() ==
                                   std::ranges::max_element(other) - other.begin());
  }
}

TEST(Divergence, OfTheSameLogitsIsNothing) {
  std::mt19937 random(3);
  const Floats logits = random_logits(random, 300, 3);
  const std::vector<std::uint16_t> row = row_of(logits);
  const Result<TokenDivergence> found = compare(logits, LogProbsView(row), 0);
  ASSERT_TRUE(found);
  EXPECT_NEAR(static_cast<double>(found->kl), 0, 0.0001);
  EXPECT_TRUE(found->same_top);
}

TEST(Divergence, PercentilesLieBetweenNeighbours) {
  const Floats values = {0, 1, 2, 3, 10};
  EXPECT_EQ(percentile(values, 0), 0);
  EXPECT_EQ(percentile(values, 0.5), 2);
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 3 + 0.6 * 7);
  EXPECT_EQ(percentile(values, 1), 10);
  EXPECT_EQ(percentile(Floats{4}, 0.99), 4);
}

TEST(Divergence, FiguresAreTheNaiveOnes) {
  const std::vector<TokenDivergence> tokens = {
      {.kl = 0.1F, .nll = 1, .nll_base = 0.5F, .same_top = true},
      {.kl = 0.3F, .nll = 2, .nll_base = 2.5F, .same_top = false},
      {.kl = 0.2F, .nll = 3, .nll_base = 3, .same_top = true},
      {.kl = 1.0F, .nll = 0, .nll_base = 1, .same_top = true}};
  const DivergenceFigures found = summarize(tokens);
  EXPECT_EQ(found.n_tokens, 4);
  EXPECT_NEAR(found.kl_mean, 0.4, 1e-7);
  // Squares of differences from 0.4: 0.09, 0.01, 0.04, 0.36.
  EXPECT_NEAR(found.kl_mean_error, std::sqrt(0.5 / 3 / 4), 1e-7);
  EXPECT_NEAR(found.kl_median, 0.25, 1e-7);
  EXPECT_NEAR(found.kl_max, 1, 1e-7);
  EXPECT_NEAR(found.kl_90, 0.3 + 0.7 * 0.7, 1e-6);
  EXPECT_DOUBLE_EQ(found.same_top, 0.75);
  EXPECT_NEAR(found.same_top_error, std::sqrt(0.75 * 0.25 / 3), 1e-12);
  const double changes[] = {std::exp(-1.0) - std::exp(-0.5), std::exp(-2.0) - std::exp(-2.5), 0,
                            1 - std::exp(-1.0)};
  double sum = 0;
  double squares = 0;
  for (const double change : changes) {
    sum += change;
    squares += change * change;
  }
  EXPECT_NEAR(found.delta_p_mean, sum / 4, 1e-12);
  EXPECT_NEAR(found.delta_p_rms, std::sqrt(squares / 4), 1e-12);
  EXPECT_NEAR(found.perplexity, std::exp(1.5), 1e-9);
  EXPECT_NEAR(found.perplexity_base, std::exp(1.75), 1e-9);
  EXPECT_NEAR(found.perplexity_ratio, std::exp(-0.25), 1e-9);
}

TEST(Divergence, OfNoTokensIsZero) { EXPECT_EQ(summarize({}).n_tokens, 0); }

TEST(ScoredText, IsCutFromTheBeginning) {
  const Tokens text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const auto chunks = cut(text, 4, 8, 99);
  ASSERT_TRUE(chunks);
  EXPECT_EQ(*chunks, (std::vector<Tokens>{{99, 2, 3, 4}, {99, 6, 7, 8}}));
  EXPECT_EQ(cut(text, 4, 1, std::nullopt)->front(), (Tokens{1, 2, 3, 4}));
  EXPECT_EQ(cut(text, 11, 1, std::nullopt).error().code, Code::kInvalidArgument);
}

TEST(ScoredText, HalfOfAChunkHasSuccessors) {
  EXPECT_EQ(n_scored(512), 255);  // as llama-perplexity counts
  EXPECT_EQ(n_scored(5), 2);
}

}  // namespace
}  // namespace slipstream::quality
