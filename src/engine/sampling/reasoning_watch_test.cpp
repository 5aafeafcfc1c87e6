#include "engine/sampling/reasoning_watch.h"

#include <gtest/gtest.h>

#include "engine/sampling/sampler.h"
#include "engine/sampling/test_model.h"

namespace slipstream {
namespace {

constexpr Token kOpen = 7;
constexpr Token kEndFirst = 8;
constexpr Token kEndSecond = 9;

ReasoningParams thinking(std::optional<int> n_tokens_max) {
  return {.open = "<think>",
          .ends = {"</think>", "<call>"},
          .forced_end = "</think>",
          .n_tokens_max = n_tokens_max};
}

ReasoningWatch watch_of(ReasoningParams params, std::string open_head = "") {
  return ReasoningWatch(std::move(params), {.open_head = std::move(open_head),
                                            .open_last = kOpen,
                                            .forced_end = {kEndFirst, kEndSecond}});
}

void accept_all(ReasoningWatch& watch, std::initializer_list<std::string_view> pieces) {
  for (const std::string_view piece : pieces) watch.accept(piece);
}

TEST(ReasoningWatch, CountsTokensBetweenTheMarkup) {
  ReasoningWatch watch = watch_of(thinking({}));
  accept_all(watch, {"\n", "<th", "ink>", "a", "b", "c</think>d", "e"});
  EXPECT_EQ(watch.n_tokens(), 2);
  EXPECT_EQ(watch.forced(), std::nullopt);
}

TEST(ReasoningWatch, EveryEndEndsIt) {
  ReasoningWatch watch = watch_of(thinking({}));
  accept_all(watch, {"<think>", "a", "<call>", "b"});
  EXPECT_EQ(watch.n_tokens(), 1);
}

TEST(ReasoningWatch, AQuotationIsNoReasoning) {
  ReasoningWatch watch = watch_of(thinking(1));
  accept_all(watch, {"It says ", "<think>", "a", "b"});
  EXPECT_EQ(watch.n_tokens(), 0);
  EXPECT_EQ(watch.forced(), std::nullopt);
}

TEST(ReasoningWatch, ForcesTheEndWhenTheLimitIsReached) {
  ReasoningWatch watch = watch_of(thinking(2));
  accept_all(watch, {"<think>", "a"});
  EXPECT_EQ(watch.forced(), std::nullopt);
  watch.accept("b");
  EXPECT_EQ(watch.forced(), kEndFirst);
  watch.accept("</");
  EXPECT_EQ(watch.forced(), kEndSecond);
  watch.accept("think>");
  EXPECT_EQ(watch.forced(), std::nullopt);
  EXPECT_EQ(watch.banned(), kOpen);  // it has reasoned enough
  watch.accept("answer");
  EXPECT_EQ(watch.banned(), std::nullopt);  // here it would be a quotation
  EXPECT_EQ(watch.n_tokens(), 2);
}

TEST(ReasoningWatch, DoesNotCutACharacter) {
  ReasoningWatch watch = watch_of(thinking(1));
  accept_all(watch, {"<think>", "\xF0\x9F"});
  EXPECT_EQ(watch.forced(), std::nullopt);
  watch.accept("\x98\x80");
  EXPECT_EQ(watch.forced(), kEndFirst);
}

TEST(ReasoningWatch, WhatThePromptOpenedMayEndAtOnce) {
  ReasoningParams params = thinking(0);
  params.is_open = true;
  EXPECT_EQ(watch_of(params).forced(), kEndFirst);
  EXPECT_EQ(watch_of(thinking(0)).forced(), std::nullopt);
  EXPECT_EQ(watch_of(thinking(0)).banned(), kOpen);
}

TEST(ReasoningWatch, BansOnlyTheTokenThatWouldOpenIt) {
  ReasoningParams params = thinking(0);
  params.open = "<|channel|>analysis";
  params.opens_anywhere = true;
  ReasoningWatch watch = watch_of(params, "<|channel|>");
  accept_all(watch, {"Well.", "<|start|>assistant"});
  EXPECT_EQ(watch.banned(), std::nullopt);
  watch.accept("<|channel|>");
  EXPECT_EQ(watch.banned(), kOpen);
}

TEST(ReasoningWatch, GivesUpForGood) {
  ReasoningWatch watch = watch_of(thinking(1));
  accept_all(watch, {"<think>", "a"});
  watch.give_up();
  watch.accept("b");
  EXPECT_EQ(watch.forced(), std::nullopt);
  EXPECT_EQ(watch.n_tokens(), 2);
}

// The most probable token is always the same, which never ends reasoning.
std::string written_by(const SamplingParams& params, int n_tokens) {
  const Vocabulary& vocabulary = needle_vocabulary();
  Result<Sampler> sampler = Sampler::create(vocabulary, params);
  EXPECT_TRUE(sampler.has_value());
  const Result<std::vector<Token>> tokens = vocabulary.tokenize("a", false, false);
  std::vector<float> logits(static_cast<std::size_t>(vocabulary.n_tokens()), 0);
  logits[static_cast<std::size_t>(tokens->front())] = 1;
  std::string text;
  for (int i = 0; i < n_tokens; ++i) {
    const Result<Sampled> sampled = sampler->sample(logits);
    EXPECT_TRUE(sampled.has_value());
    text += vocabulary.piece(sampled->token, true);
  }
  return text;
}

TEST(ReasoningWatch, ASamplerWritesTheForcedEnd) {
  SamplingParams params{.temperature = 0, .reasoning = thinking(3)};
  params.reasoning.is_open = true;
  EXPECT_TRUE(written_by(params, 20).starts_with("aaa</think>a"));
  params.grammar = R"(root ::= [ab]* "</think>" "b"*)";
  EXPECT_TRUE(written_by(params, 20).starts_with("aaa</think>b"));
}

TEST(ReasoningWatch, AGrammarThatRefusesTheEndWins) {
  SamplingParams params{.temperature = 0, .grammar = "root ::= [ab]*", .reasoning = thinking(3)};
  params.reasoning.is_open = true;
  EXPECT_EQ(written_by(params, 8), "aaaaaaaa");
}

}  // namespace
}  // namespace slipstream
