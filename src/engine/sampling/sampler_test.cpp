#include "engine/sampling/sampler.h"

#include <gtest/gtest.h>
#include <llama-cpp.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "engine/sampling/not_finite.h"
#include "engine/sampling/test_model.h"

namespace slipstream {
namespace {

std::size_t n_vocab() { return static_cast<std::size_t>(needle_vocabulary().n_tokens()); }

Sampler sampler_of(const SamplingParams& params) {
  Result<Sampler> sampler = Sampler::create(needle_vocabulary(), params);
  EXPECT_TRUE(sampler.has_value()) << sampler.error().message;
  return std::move(*sampler);
}

// The given logits; all other tokens are out of reach.
std::vector<float> logits_of(const std::map<Token, float>& likely) {
  std::vector<float> logits(n_vocab(), -1000);
  for (const auto& [token, logit] : likely) logits[static_cast<std::size_t>(token)] = logit;
  return logits;
}

std::vector<float> random_logits(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> logits(n_vocab());
  for (float& logit : logits) logit = normal(random);
  return logits;
}

// How often each token comes in n independent draws.
std::map<Token, int> draws(const SamplingParams& params, const std::map<Token, float>& likely,
                           int n = 300) {
  SamplingParams seeded = params;
  seeded.seed = 1;
  Sampler sampler = sampler_of(seeded);
  const std::vector<float> logits = logits_of(likely);
  std::map<Token, int> counts;
  for (int i = 0; i < n; ++i) ++counts[sampler.sample(logits)->token];
  return counts;
}

std::set<Token> drawn(const SamplingParams& params, const std::map<Token, float>& likely) {
  std::set<Token> tokens;
  for (const auto& [token, count] : draws(params, likely)) tokens.insert(token);
  return tokens;
}

Token token_of(std::string_view text) {
  const auto tokens = needle_vocabulary().tokenize(text, false, true);
  EXPECT_EQ(tokens->size(), 1U) << text;
  return tokens->at(0);
}

TEST(Sampler, GreedyTakesTheHighestAndOfEqualOnesTheLowestId) {
  Sampler sampler = sampler_of({.temperature = 0});
  EXPECT_EQ(sampler.sample(logits_of({{5, 1}, {9, 2}, {7, 2}}))->token, 7);
  EXPECT_EQ(sampler.sample(std::vector<float>(n_vocab(), 0))->token, 0);
  EXPECT_EQ(sampler.sample(logits_of({{2047, -999}}))->token, 2047);
  EXPECT_FALSE(sampler.sample(logits_of({{5, 1}}))->logprobs.has_value());
}

TEST(Sampler, GreedyIsNotCutByTypicalP) {
  Sampler sampler = sampler_of({.temperature = 0, .top_p = 0.1F, .typical_p = 0.5F});
  std::map<Token, float> likely = {{0, std::log(0.4F)}};
  for (Token token = 1; token <= 6; ++token) likely[token] = std::log(0.1F);
  EXPECT_EQ(sampler.sample(logits_of(likely))->token, 0);
}

TEST(Sampler, DrawsFromTheModelsDistribution) {
  const int n = 4000;
  const auto counts = draws({}, {{1, std::log(0.5F)}, {2, std::log(0.3F)}, {3, std::log(0.2F)}}, n);
  EXPECT_EQ(counts.size(), 3U);
  for (const auto& [token, share] : std::map<Token, double>{{1, 0.5}, {2, 0.3}, {3, 0.2}}) {
    EXPECT_NEAR(counts.at(token) / static_cast<double>(n), share, 0.03) << token;  // 4 sigma
  }
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::map<Token, float> likely = {{1, 1}, {2, 0}};
  EXPECT_EQ(drawn({.temperature = 0.05F}, likely), std::set<Token>{1});
  EXPECT_EQ(drawn({.temperature = 1e-30F}, likely), std::set<Token>{1}) << "no overflow";
  const auto counts = draws({.temperature = 50, .top_k = 2}, likely, 2000);
  EXPECT_NEAR(counts.at(1), 1000, 100);
}

TEST(Sampler, TopKKeepsTheBest) {
  const std::map<Token, float> likely = {{3, 0}, {2, 0.5F}, {1, 0.4F}};
  EXPECT_EQ(drawn({.top_k = 1}, likely), std::set<Token>{2});
  EXPECT_EQ(drawn({.top_k = 2}, likely), (std::set<Token>{1, 2}));
  EXPECT_EQ(drawn({.top_k = 1'000'000}, likely), (std::set<Token>{1, 2, 3}));
}

TEST(Sampler, TopPKeepsTheBestThatTogetherHaveP) {
  const std::map<Token, float> likely = {
      {1, std::log(0.5F)}, {2, std::log(0.3F)}, {3, std::log(0.2F)}};
  EXPECT_EQ(drawn({.top_p = 0.4F}, likely), std::set<Token>{1});
  EXPECT_EQ(drawn({.top_p = 0.7F}, likely), (std::set<Token>{1, 2}));
  EXPECT_EQ(drawn({.top_p = 0.9F}, likely), (std::set<Token>{1, 2, 3}));
}

TEST(Sampler, MinPCutsWhatIsFarBelowTheBest) {
  const std::map<Token, float> likely = {{1, 0}, {2, -1}, {3, -3}};
  EXPECT_EQ(drawn({.min_p = 0.2F}, likely), (std::set<Token>{1, 2}));
  EXPECT_EQ(drawn({.min_p = 0.5F}, likely), std::set<Token>{1});
}

// All tokens but seven have probability 0 in floats; libllama's own sampler fails on that.
TEST(Sampler, TypicalPKeepsWhatIsAsSurprisingAsExpected) {
  std::map<Token, float> likely = {{0, std::log(0.4F)}};
  for (Token token = 1; token <= 6; ++token) likely[token] = std::log(0.1F);
  EXPECT_EQ(drawn({.typical_p = 0.55F}, likely), (std::set<Token>{1, 2, 3, 4, 5, 6}));
}

TEST(Sampler, PenaltiesLowerWhatWasThereBefore) {
  const std::vector<float> logits = logits_of({{1, 2}, {2, 1.5F}, {3, -1}});
  const auto after = [&](const SamplingParams& params, const std::vector<Token>& prompt) {
    Sampler sampler = sampler_of(params);
    sampler.accept_prompt(prompt);
    return sampler.sample(logits)->token;
  };
  EXPECT_EQ(after({.temperature = 0}, {1}), 1);
  EXPECT_EQ(after({.temperature = 0, .repeat_penalty = 1.5F}, {1}), 2);
  EXPECT_EQ(after({.temperature = 0, .repeat_penalty = 1.5F}, {1, 2}), 1);
  EXPECT_EQ(after({.temperature = 0, .presence_penalty = 1}, {1}), 2);
  EXPECT_EQ(after({.temperature = 0, .frequency_penalty = 0.2F}, {1}), 1);
  EXPECT_EQ(after({.temperature = 0, .frequency_penalty = 0.2F}, {1, 1, 1}), 2);
  EXPECT_EQ(after({.temperature = 0, .presence_penalty = 1, .penalty_last_n = 2}, {1, 8, 9}), 1)
      << "too long ago";
  EXPECT_EQ(after({.temperature = 0, .presence_penalty = -5}, {3}), 3) << "a reward";
}

TEST(Sampler, PenaltiesSeeTheAnswerToo) {
  Sampler sampler = sampler_of({.temperature = 0, .presence_penalty = 1});
  const std::vector<float> logits = logits_of({{1, 2}, {2, 1.5F}});
  EXPECT_EQ(sampler.sample(logits)->token, 1);
  EXPECT_EQ(sampler.sample(logits)->token, 2);
  EXPECT_EQ(sampler.sample(logits)->token, 1) << "now both have been there";
}

TEST(Sampler, DryBreaksARepetition) {
  const std::vector<Token> prompt = {10, 11, 12, 13, 10, 11, 12};
  const std::vector<float> logits = logits_of({{13, 2}, {14, 1}});
  SamplingParams params{.temperature = 0};
  Sampler without = sampler_of(params);
  without.accept_prompt(prompt);
  EXPECT_EQ(without.sample(logits)->token, 13);
  params.dry.multiplier = 0.8F;
  Sampler with = sampler_of(params);
  with.accept_prompt(prompt);
  EXPECT_EQ(with.sample(logits)->token, 14);
  params.dry.sequence_breakers = {needle_vocabulary().piece(12, true)};
  Sampler broken = sampler_of(params);
  broken.accept_prompt(prompt);
  EXPECT_EQ(broken.sample(logits)->token, 13) << "no repetition reaches across a breaker";
}

TEST(Sampler, BiasRaisesLowersAndBans) {
  const std::map<Token, float> likely = {{1, 2}, {2, 1}};
  EXPECT_EQ(drawn({.temperature = 0, .logit_bias = {{2, 1.5F}}}, likely), std::set<Token>{2});
  EXPECT_EQ(drawn({.temperature = 0, .logit_bias = {{1, -1.5F}}}, likely), std::set<Token>{2});
  EXPECT_EQ(drawn({.logit_bias = {{1, -kInfinity}}}, likely), std::set<Token>{2});
}

TEST(Sampler, BanningAllIsAnError) {
  SamplingParams params{.temperature = 0.5F, .typical_p = 0.5F};
  for (Token token = 0; token < needle_vocabulary().n_tokens(); ++token) {
    params.logit_bias.push_back({token, -kInfinity});
  }
  Sampler sampler = sampler_of(params);
  EXPECT_EQ(sampler.sample(logits_of({{1, 2}})).error().message,
            "logit_bias leaves no token to choose");
}

TEST(Sampler, BadLogitsAreAnErrorInEveryMode) {
  std::vector<SamplingParams> modes = {
      {.temperature = 0},
      {},
      {.top_k = 40, .top_p = 0.9F, .min_p = 0.1F, .typical_p = 0.9F, .presence_penalty = 1},
      {.grammar = "root ::= \"yes\"", .n_top_logprobs = 5}};
  for (const SamplingParams& params : modes) {
    Sampler sampler = sampler_of(params);
    std::vector<float> logits(n_vocab(), 0);
    logits[1000] = kNan;
    EXPECT_EQ(sampler.sample(logits).error().code, Code::kCorrupt);
    logits[1000] = kInfinity;
    EXPECT_EQ(sampler.sample(logits).error().code, Code::kCorrupt);
    logits.assign(n_vocab(), -kInfinity);
    EXPECT_EQ(sampler.sample(logits).error().code, Code::kCorrupt);
    logits.assign(n_vocab(), kNan);
    EXPECT_EQ(sampler.sample(logits).error().code, Code::kCorrupt);
  }
}

TEST(Sampler, SeedsAreReproducible) {
  const auto run = [](std::optional<std::uint32_t> seed) {
    Sampler sampler = sampler_of({.top_p = 0.9F, .seed = seed});
    std::vector<Token> tokens;
    for (std::uint32_t i = 0; i < 20; ++i) {
      tokens.push_back(sampler.sample(random_logits(i))->token);
    }
    return tokens;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
  EXPECT_EQ(run(0xFFFFFFFF), run(0xFFFFFFFF)) << "libllama would take this for none";
  EXPECT_NE(run(std::nullopt), run(std::nullopt));
  EXPECT_EQ(sampler_of({.seed = 7}).seed(), 7U);
  EXPECT_NE(sampler_of({}).seed(), sampler_of({}).seed());
}

TEST(Sampler, LogprobsAreOfTheModelNotOfTheSampling) {
  Sampler sampler = sampler_of({.temperature = 0.1F,
                                .top_k = 1,
                                .presence_penalty = 5,
                                .logit_bias = {{2, 10}},
                                .n_top_logprobs = 2});
  const Sampled sampled = *sampler.sample(logits_of({{1, std::log(0.75F)}, {2, std::log(0.25F)}}));
  EXPECT_EQ(sampled.token, 2);
  ASSERT_TRUE(sampled.logprobs.has_value());
  EXPECT_FLOAT_EQ(sampled.logprobs->logprob, std::log(0.25F));
  ASSERT_EQ(sampled.logprobs->top.size(), 2U);
  EXPECT_EQ(sampled.logprobs->top[0].token, 1);
  EXPECT_FLOAT_EQ(sampled.logprobs->top[0].logprob, std::log(0.75F));
}

std::string answer_of(Sampler& sampler, std::uint32_t seed) {
  std::string answer;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const Token token = sampler.sample(random_logits(seed + i))->token;
    if (needle_vocabulary().is_end(token)) return answer;
    answer += needle_vocabulary().piece(token, true);
  }
  return answer + " and so on";
}

TEST(Sampler, AGrammarForcesTheAnswer) {
  std::set<std::string> answers;
  for (const float temperature : {0.F, 1.F}) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      Sampler sampler = sampler_of(
          {.temperature = temperature, .seed = seed, .grammar = R"(root ::= "yes" | "no")"});
      sampler.accept_prompt(std::vector<Token>{1, 2, 3});  // not part of the answer
      answers.insert(answer_of(sampler, seed * 100));
    }
  }
  EXPECT_EQ(answers, (std::set<std::string>{"no", "yes"}));
}

TEST(Sampler, NothingEndsAnAnswerThatIsTooShort) {
  const Token end = needle_vocabulary().eos().value_or(-1);
  ASSERT_TRUE(needle_vocabulary().is_end(end));
  for (const float temperature : {0.F, 1.F}) {
    Sampler sampler =
        sampler_of({.temperature = temperature, .stop_tokens = {7}, .n_tokens_min = 3, .seed = 1});
    const std::vector<float> logits = logits_of({{end, 900}, {7, 800}, {8, 0}});
    for (int i = 0; i < 3; ++i) EXPECT_EQ(sampler.sample(logits)->token, 8) << i;
    EXPECT_EQ(sampler.sample(logits)->token, end);
  }
}

TEST(Sampler, AGrammarThatIsCompleteEndsAnAnswerThatIsTooShort) {
  for (const float temperature : {0.F, 1.F}) {
    SamplingParams params{.temperature = temperature,
                          .stop_tokens = {token_of("e")},
                          .n_tokens_min = 30,
                          .seed = 1,
                          .grammar = R"(root ::= "yes")"};
    Sampler complete = sampler_of(params);
    EXPECT_EQ(answer_of(complete, 1), "yes");
    params.grammar = "root ::= [a-z]*";
    Sampler open = sampler_of(params);
    for (std::uint32_t i = 0; i < 30; ++i) {
      const Token token = open.sample(random_logits(i))->token;
      EXPECT_FALSE(needle_vocabulary().is_end(token)) << i;
      EXPECT_NE(token, token_of("e"));
    }
  }
}

TEST(Sampler, AGrammarThatLeavesNoTokenIsAnError) {
  Sampler sampler =
      sampler_of({.logit_bias = {{token_of("a"), -kInfinity}}, .grammar = "root ::= \"a\""});
  EXPECT_EQ(sampler.sample(random_logits(1)).error().message,
            "the grammar leaves no token that the answer could go on by");
}

TEST(Sampler, ABadGrammarIsRefused) {
  for (const char* grammar :
       {"root ::= \"open", "root ::= root \"a\" | \"b\"", "no ::= \"root\""}) {
    const Result<Sampler> sampler = Sampler::create(needle_vocabulary(), {.grammar = grammar});
    ASSERT_FALSE(sampler.has_value()) << grammar;
    EXPECT_EQ(sampler.error().code, Code::kInvalidArgument);
    EXPECT_TRUE(sampler.error().message.starts_with("grammar")) << sampler.error().message;
  }
  EXPECT_FALSE(Sampler::create(needle_vocabulary(), {.temperature = -1}).has_value());
}

// Trying a token first must not change which one is chosen.
RC_GTEST_PROP(Sampler, GreedyWithAGrammarTakesTheHighestItAllows, (std::uint32_t seed)) {
  const std::string text = R"(root ::= "{" pair ("," pair)* "}"
pair ::= "\"" [a-z ]+ "\":" ([0-9]+ | "[" [0-9]* "]"))";
  const TokenPieces& pieces = needle_vocabulary().pieces();
  Sampler sampler = sampler_of({.temperature = 0, .grammar = text});
  GrammarMatcher matcher =
      *GrammarMatcher::create(*Grammar::parse(text, needle_vocabulary().n_tokens(), nullptr));
  std::vector<bool> allowed;
  for (std::uint32_t i = 0; i < 10; ++i) {
    // Like a model: prefers mostly what the grammar allows.
    std::vector<float> logits = random_logits(seed + i);
    RC_ASSERT(matcher.find_allowed(pieces, allowed).has_value());
    Token expected = -1;
    for (std::size_t token = 0; token < logits.size(); ++token) {
      if (i % 2 == 0 && allowed[token]) logits[token] += 3;
      const auto best = static_cast<std::size_t>(expected);
      if (allowed[token] && (expected < 0 || logits[token] > logits[best])) {
        expected = static_cast<Token>(token);
      }
    }
    RC_ASSERT(sampler.sample(logits)->token == expected);
    if (pieces.is_end(expected)) break;
    RC_ASSERT(*matcher.accept(expected, pieces));
  }
}

// Compared with libllama's penalties and DRY on the whole vocabulary, as in llama.cpp.
RC_GTEST_PROP(Sampler, HistoryCountsAsInLlamaCpp, (std::uint32_t seed)) {
  SamplingParams params{.temperature = 0,
                        .repeat_penalty = 1.3F,
                        .frequency_penalty = 0.4F,
                        .presence_penalty = 0.3F,
                        .penalty_last_n = 20};
  params.dry.multiplier = 1.5F;
  params.dry.last_n = 50;
  params.dry.sequence_breakers = {"!"};
  const llama_vocab* vocab = needle_vocabulary().get();
  const llama_sampler_ptr penalties(
      llama_sampler_init_penalties(needle_vocabulary().n_tokens(), 20, 1.3F, 0.4F, 0.3F));
  const char* breaker = "!";
  const llama_sampler_ptr dry(llama_sampler_init_dry(vocab, 1.5F, 1.75F, 2, 50, &breaker, 1));

  Sampler sampler = sampler_of(params);
  const auto prompt = *rc::gen::container<std::vector<Token>>(rc::gen::inRange(0, 6));
  sampler.accept_prompt(prompt);
  const auto accept = [&](Token token) {
    llama_sampler_accept(penalties.get(), token);
    llama_sampler_accept(dry.get(), token);
  };
  for (const Token token : prompt) accept(token);
  for (std::uint32_t i = 0; i < 20; ++i) {
    std::vector<float> logits = random_logits(seed + i);
    for (std::size_t token = 0; token < 6; ++token) logits[token] += 9;  // so that tokens repeat
    std::vector<llama_token_data> candidates;
    for (std::size_t token = 0; token < logits.size(); ++token) {
      candidates.push_back({static_cast<Token>(token), logits[token], 0});
    }
    llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
    llama_sampler_apply(penalties.get(), &array);
    llama_sampler_apply(dry.get(), &array);
    const Token expected = std::ranges::max_element(candidates, {}, &llama_token_data::logit)->id;
    RC_ASSERT(sampler.sample(logits)->token == expected);
    accept(expected);
  }
}

TEST(Sampler, MovesWithItsState) {
  const std::vector<float> logits = logits_of({{1, 2}, {2, 1.5F}});
  Sampler first = sampler_of({.temperature = 0, .presence_penalty = 1});
  EXPECT_EQ(first.sample(logits)->token, 1);
  Sampler second = std::move(first);
  EXPECT_EQ(second.sample(logits)->token, 2);
}

TEST(Sampler, ACopyChoosesAsOneThatWasBuilt) {
  SamplingParams params;
  params.temperature = 1;
  params.seed = 7;
  params.penalty_last_n = 64;
  params.repeat_penalty = 1.3F;
  params.dry.multiplier = 0.8F;
  params.grammar = "root ::= [a-z ]*";
  params.logit_bias = {{.token = 3, .bias = 5}};
  params.n_tokens_min = 10;
  const auto prototype = Sampler::create(needle_vocabulary(), params);
  ASSERT_TRUE(prototype.has_value()) << prototype.error().message;
  std::mt19937 random(1);
  for (const std::uint32_t seed : {7U, 8U}) {
    params.seed = seed;
    Sampler copy = prototype->clone(params);
    auto built = Sampler::create(needle_vocabulary(), params);
    const std::vector<Token> prompt = {5, 6, 7, 5, 6, 7};
    copy.accept_prompt(prompt);
    built->accept_prompt(prompt);
    EXPECT_EQ(copy.seed(), seed);
    for (int step = 0; step < 30; ++step) {
      std::vector<float> logits(static_cast<std::size_t>(needle_vocabulary().n_tokens()));
      for (float& logit : logits) logit = static_cast<float>(random() % 1000) / 100;
      EXPECT_EQ(copy.sample(logits)->token, built->sample(logits)->token) << step;
    }
  }
}

}  // namespace
}  // namespace slipstream
