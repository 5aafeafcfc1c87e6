// Speculation on a real model: drafts of any kind change no answer and leave nothing behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "drafted_answers.h"

namespace slipstream {
namespace {

using Texts = std::vector<std::vector<Token>>;

// Knows how the texts go on, and says it as `distort` likes it.
class Knowing final : public Drafter {
 public:
  using Distort = std::function<Token(Token)>;
  Knowing(const Texts& texts, Distort distort) : texts_(texts), distort_(std::move(distort)) {}

  Draft propose(std::span<const Token> tokens, int n_max) override {
    Draft draft{.tokens = {}, .n_matched = 5};
    for (const std::vector<Token>& text : texts_) {
      if (text.size() < tokens.size() || !std::ranges::starts_with(text, tokens)) continue;
      const auto rest = std::span(text).subspan(tokens.size());
      for (const Token token : rest.first(std::min(rest.size(), static_cast<std::size_t>(n_max)))) {
        draft.tokens.push_back(distort_(token));
      }
      break;
    }
    return draft;
  }
  std::size_t n_bytes() const override { return 0; }

 private:
  const Texts& texts_;
  Distort distort_;
};

// Always says the same token.
class Same final : public Drafter {
 public:
  explicit Same(Token token) : token_(token) {}
  Draft propose(std::span<const Token> /*tokens*/, int n_max) override {
    return {.tokens = std::vector<Token>(static_cast<std::size_t>(n_max), token_)};
  }
  std::size_t n_bytes() const override { return 0; }

 private:
  Token token_;
};

class DraftsOnEveryScheme : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Speculation, DraftsOnEveryScheme,
                         testing::Values("f16", "q8_0", "turbo8", "turbo8v4", "turbo4", "turbo3",
                                         "turbo4,attend=512"),
                         [](const auto& scheme) {
                           std::string name = scheme.param;
                           std::erase_if(name, [](char c) { return c == ',' || c == '='; });
                           return name;
                         });

// With keys or values of four bits or fewer what a token reads in 8 bits depends on which chunks its
// neighbours leave to it (decision 009), with drafts or without: answers are compared where there are
// no neighbours.
std::vector<int> comparable_numbers_of_sequences(const std::string& kv) {
  const bool has_copies = kv.starts_with("turbo") && kv != "turbo8";
  return has_copies ? std::vector{1} : std::vector{1, 8};
}

// A limit on what is read counts twice for several rows together, so the answers end before it.
int n_comparable_tokens(const std::string& kv) {
  return kv.contains("attend") ? std::min(n_tokens_each(), 256) : n_tokens_each();
}

TEST_P(DraftsOnEveryScheme, DraftsOfEveryKindChangeNoAnswer) {
  const int n_tokens = n_comparable_tokens(GetParam());
  for (const int n_sequences : comparable_numbers_of_sequences(GetParam())) {
    SpeculationStats stats;
    const auto answers = [&](const SpeculationOptions& speculation,
                             Speculation::MakeDrafter make = {}) {
      RunnerOnNeedles engine(GetParam(), 16384, options_with(speculation, n_sequences));
      engine.runner().set_drafters(std::move(make));
      auto outcomes =
          run_behind_prompts(engine, long_requests(engine.vocabulary(), n_sequences, n_tokens));
      stats = engine.runner().stats().speculation;
      return outcomes;
    };
    const std::vector<Outcome> plain = answers({});
    EXPECT_EQ(stats.n_drafts, 0);
    Texts texts;
    {
      const RunnerOnNeedles any("f16", 256, options_with({}, 1));
      for (const auto& request : long_requests(any.vocabulary(), n_sequences, n_tokens)) {
        texts.push_back(request.prompt);
        std::ranges::copy(plain[texts.size() - 1].tokens, std::back_inserter(texts.back()));
      }
    }
    // Before the first tie. Codes turn differences in rounding into larger ones: ties come earlier.
    const int percent = GetParam() == "f16" || GetParam() == "q8_0" ? 90 : 50;
    const auto n_compared_min = static_cast<std::size_t>(n_tokens * n_sequences * percent / 100);
    const auto told = [&](Knowing::Distort distort) {
      return answers(kAlways,
                     [&texts, distort] { return std::make_unique<Knowing>(texts, distort); });
    };

    const std::vector<Outcome> right = told([](Token t) { return t; });
    EXPECT_GE(n_same(plain, right), n_compared_min);
    EXPECT_GT(stats.n_accepted * 10, stats.n_drafted * 9) << "they are right";
    const std::vector<Outcome> wrong = told([](Token t) { return (t + 1) % 2000; });
    EXPECT_GE(n_same(plain, wrong), n_compared_min);
    EXPECT_EQ(stats.n_accepted, 0);
    EXPECT_GT(stats.n_drafted, n_tokens);
    std::mt19937 random(5);
    const std::vector<Outcome> mixed =
        told([&random](Token t) { return random() % 3 == 0 ? 1 + (t + 7) % 2000 : t; });
    EXPECT_GE(n_same(plain, mixed), n_compared_min);
    const std::vector<Outcome> grams = answers(kAlways);
    EXPECT_GE(n_same(plain, grams), n_compared_min);
  }
}

constexpr std::array<Token, 2> kWrong = {1990, 1995};

// Two kinds of wrong drafts, in batches of the same shape: nothing may differ, not even in the last
// bit: neither what earlier tokens are stored as, nor where, nor what is drawn.
void expect_nothing_is_left(const std::string& kv, const std::string& path, int n_sequences) {
  const auto answers = [&](Token wrong) {
    RunnerOnNeedles engine(kv, 8192, options_with(kAlways, n_sequences), path);
    engine.runner().set_drafters([wrong] { return std::make_unique<Same>(wrong); });
    std::vector<GenerateRequest> requests =
        long_requests(engine.vocabulary(), n_sequences, 32 + n_tokens_each(),
                      kv.contains("attend") ? 1500 : 300);  // more than the limit
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    for (GenerateRequest& request : requests) {
      for (const Token token : kWrong) request.sampling.logit_bias.push_back({token, kNever});
    }
    for (std::size_t i = 0; i < requests.size(); i += 3) {
      requests[i].sampling.temperature = 0.8F;
      requests[i].sampling.seed = static_cast<std::uint32_t>(i);
    }
    auto outcomes = run_behind_prompts(engine, requests);
    EXPECT_EQ(engine.runner().stats().speculation.n_accepted, 0);
    EXPECT_GT(engine.runner().stats().speculation.n_drafted, 100);
    return outcomes;
  };
  const std::vector<Outcome> a = answers(kWrong[0]);
  const std::vector<Outcome> b = answers(kWrong[1]);
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].tokens, b[i].tokens) << kv << ", sequence " << i;
    for (std::size_t j = 0; j < a[i].logprobs.size(); ++j) {
      ASSERT_EQ(a[i].logprobs[j].logprob, b[i].logprobs[j].logprob)
          << kv << ", sequence " << i << ", token " << j;
    }
  }
}

TEST_P(DraftsOnEveryScheme, OfARefusedDraftNothingIsLeft) {
  for (const int n_sequences : {1, 8}) {
    expect_nothing_is_left(GetParam(), SLIPSTREAM_NEEDLE_MODEL, n_sequences);
  }
}

// They decide how all rows of a compressed cache are coded (compressed_cache_centre.cpp).
TEST(Speculation, TheFirstRowsOfACacheAreNeverDrafted) {
  const auto answer = [](Token wrong) {
    RunnerOnNeedles engine("turbo4", 512, options_with(kAlways, 1));
    engine.runner().set_drafters([wrong] { return std::make_unique<Same>(wrong); });
    const std::vector<Token> prompt = *engine.vocabulary().tokenize("The cat sat", false, true);
    EXPECT_LT(prompt.size(), 16U);
    const Outcome outcome = run_all(engine, {greedy_request(prompt, 60)}).front();
    EXPECT_GT(outcome.ending->usage.n_drafted, 50);
    return outcome;
  };
  const Outcome a = answer(1990);
  const Outcome b = answer(1995);
  for (std::size_t i = 0; i < a.logprobs.size(); ++i) {
    ASSERT_EQ(a.logprobs[i].logprob, b.logprobs[i].logprob) << "token " << i;
  }
}

// What an answer is made of, besides the most probable tokens.
TEST(Speculation, GrammarsStopsAndPenaltiesSeeWhatTheySawWithoutDrafts) {
  const auto answers = [](const SpeculationOptions& speculation) {
    RunnerOnNeedles engine("f16", 4096, options_with(speculation, 4));
    const std::vector<Token> prompt =
        *engine.vocabulary().tokenize(make_needle(3, 700).prompt, false, true);
    std::vector<GenerateRequest> requests(5, greedy_request(prompt, 80));
    requests[0].sampling.grammar = R"(root ::= ("the " | "name ")+)";
    requests[1].stops = {"amber", " to ", "ing"};
    requests[2].sampling.repeat_penalty = 1.2F;
    requests[2].sampling.penalty_last_n = 32;
    requests[3].ignores_end = false;
    requests[4].sampling.dry.multiplier = 1;
    auto outcomes = run_all(engine, requests);
    if (speculation.speculates == Speculates::kAlways) {
      EXPECT_GT(engine.runner().stats().speculation.n_accepted, 20);
    }
    return outcomes;
  };
  const std::vector<Outcome> plain = answers({});
  const std::vector<Outcome> drafted = answers(kAlways);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(plain[i].tokens, drafted[i].tokens) << i;
    EXPECT_EQ(plain[i].text, drafted[i].text) << i;
    EXPECT_EQ(plain[i].ending->reason, drafted[i].ending->reason) << i;
    EXPECT_EQ(plain[i].ending->matched_stop, drafted[i].ending->matched_stop) << i;
    EXPECT_EQ(plain[i].ending->usage.n_generated, drafted[i].ending->usage.n_generated) << i;
  }
}

// How often tokens of each rank are drawn, against the model's own probabilities at that place; and
// the same of those that were drafted. A hundred thousand draws at night.
TEST(Speculation, DrawsEachTokenAsOftenAsTheModelSays) {
  constexpr int kRanks = 4;
  const char* n_wanted = std::getenv("SLIPSTREAM_DRAWS");
  const int n_draws = n_wanted != nullptr ? std::atoi(n_wanted) : 3'000;
  RunnerOnNeedles engine("f16", 8192, options_with(kAlways, 8));
  std::array<double, kRanks> drawn = {};
  std::array<double, kRanks> expected = {};
  int n = 0;
  for (unsigned seed = 0; n < n_draws; seed += 8) {
    std::vector<GenerateRequest> requests;
    for (unsigned i = 0; i < 8; ++i) {
      // Repeats itself, so that there are drafts.
      const std::string text = haystack().substr((seed + i) * 37 % (haystack().size() - 200), 200);
      requests.push_back(
          greedy_request(*engine.vocabulary().tokenize(text + text, false, true), 100));
      SamplingParams& sampling = requests.back().sampling;
      sampling.temperature = 1;
      sampling.top_k = kRanks;
      sampling.n_top_logprobs = kRanks;
      sampling.seed = seed + i;
    }
    for (const Outcome& outcome : run_all(engine, requests)) {
      for (std::size_t i = 0; i < outcome.tokens.size(); ++i, ++n) {
        const auto& top = outcome.logprobs[i].top;
        ASSERT_EQ(top.size(), static_cast<std::size_t>(kRanks));
        double sum = 0;
        for (const auto& one : top) sum += std::exp(static_cast<double>(one.logprob));
        for (std::size_t rank = 0; rank < kRanks; ++rank) {
          expected[rank] += std::exp(static_cast<double>(top[rank].logprob)) / sum;
          drawn[rank] += top[rank].token == outcome.tokens[i] ? 1 : 0;
        }
      }
    }
  }
  double chi_square = 0;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    chi_square += std::pow(drawn[rank] - expected[rank], 2) / expected[rank];
  }
  EXPECT_LT(chi_square, 16.27) << "p = 0.001 with three degrees of freedom";
  const SpeculationStats stats = engine.runner().stats().speculation;
  EXPECT_GT(stats.n_accepted, n / 20) << "drafts are part of it";
  EXPECT_GT(stats.n_drafted - stats.n_accepted, n / 20);
  RecordProperty("draws", n);
  RecordProperty("chi_square", std::to_string(chi_square));
  RecordProperty("accepted", std::to_string(stats.n_accepted));
}

TEST(Speculation, ABatchThatFailsIsComputedAgainWithoutDrafts) {
  const auto answers = [](const SpeculationOptions& speculation, bool fails) {
    RunnerOnNeedles engine("turbo8v4", 4096, options_with(speculation, 4));
    int n_batches = 0;
    int n_failed = 0;
    if (fails) {
      engine.runner().set_fault([&](const llama_batch& batch) {
        const bool has_drafts = batch.n_tokens > 4 && batch.n_tokens <= 24;
        if (!has_drafts || ++n_batches % 3 != 0) return 0;
        ++n_failed;
        return -3;
      });
    }
    auto outcomes = run_all(engine, long_requests(engine.vocabulary(), 4, 60));
    EXPECT_EQ(n_failed > 0, fails);
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.ending->reason, FinishReason::kLength) << outcome.ending->error;
    }
    EXPECT_EQ(engine.runner().stats().n_failed_batches, n_failed);
    engine.runner().clear_prefixes();
    EXPECT_EQ(engine.runner().stats().n_cells_used, 0);
    return outcomes;
  };
  const std::vector<Outcome> plain = answers({}, false);
  EXPECT_GT(n_same(plain, answers(kAlways, true)), 200U);
}

TEST(Speculation, SequencesThatGiveWayAnswerAsIfNothingHadBeen) {
  // Cells for one and a half, so that there are none for drafts most of the time.
  const auto answers = [](const SpeculationOptions& speculation, int n_cells) {
    RunnerOnNeedles engine("f16", n_cells, options_with(speculation, 2));
    std::vector<GenerateRequest> requests = long_requests(engine.vocabulary(), 3, 300);
    auto outcomes = run_all(engine, requests);
    EXPECT_EQ(engine.runner().stats().n_preempted > 0, n_cells < 4096);
    return outcomes;
  };
  const std::vector<Outcome> plain = answers({}, 4096);
  EXPECT_GT(n_same(plain, answers(kAlways, 768)), 600U);
}

// A sequence that is alone has nobody to be separated from.
TEST(Speculation, ABatchOfOneThatFailsIsComputedAgainWithoutDrafts) {
  RunnerOnNeedles engine("f16", 2048, options_with(kAlways, 1));
  int n_failed = 0;
  engine.runner().set_fault([&](const llama_batch& batch) {
    const bool fails = batch.n_tokens > 1 && batch.n_tokens <= 6;
    n_failed += fails ? 1 : 0;
    return fails ? -3 : 0;
  });
  const RequestId id = engine.ask(greedy_request(std::vector<Token>(60, 200), 40));
  engine.run();
  EXPECT_GT(n_failed, 5);
  EXPECT_EQ(engine.outcomes[id].ending->reason, FinishReason::kLength);
  EXPECT_EQ(engine.outcomes[id].ending->usage.n_accepted, 0);
}

class DraftsOnEveryShape : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Speculation, DraftsOnEveryShape,
                         testing::Values("qwen3", "llama", "stablelm", "bloom", "gemma3", "gpt-oss",
                                         "qwen3moe", "deepseek2"),
                         [](const auto& shape) {
                           std::string name = shape.param;
                           std::erase(name, '-');
                           return name;
                         });

// Random weights: answers mean nothing, and ties are many. A compressed cache makes more of a
// difference in rounding than f16 does, and some of these shapes more than any trained model.
TEST_P(DraftsOnEveryShape, ChangeNoAnswer) {
  const auto answers = [&](const SpeculationOptions& speculation,
                           Speculation::MakeDrafter make = {}) {
    RunnerOnNeedles engine("f16", 4096, options_with(speculation, 2), path_of(GetParam()));
    engine.runner().set_drafters(std::move(make));
    return run_all(engine, long_requests(engine.vocabulary(), 2, n_tokens_each()));
  };
  const std::vector<Outcome> plain = answers({});
  Texts texts;
  const RunnerOnNeedles any("f16", 256, options_with({}, 1));
  for (const auto& request : long_requests(any.vocabulary(), 2, 1)) {
    texts.push_back(request.prompt);
    std::ranges::copy(plain[texts.size() - 1].tokens, std::back_inserter(texts.back()));
  }
  std::mt19937 random(5);
  const std::vector<Outcome> drafted = answers(kAlways, [&] {
    return std::make_unique<Knowing>(
        texts, [&random](Token t) { return random() % 3 == 0 ? 1 + (t + 7) % 2000 : t; });
  });
  const std::size_t n = n_same(plain, drafted);
  RecordProperty("tokens_the_same", std::to_string(n));
  EXPECT_GT(n, 0U);
}

TEST_P(DraftsOnEveryShape, LeaveNothingBehindWhereTheyAreRefused) {
  for (const std::string kv : {"f16", "turbo4"}) {
    expect_nothing_is_left(kv, path_of(GetParam()), 2);
  }
}

TEST(Speculation, ModelsWithRecurrentStateAnswerWithoutDrafts) {
  RunnerOnNeedles engine("f16", 2048, options_with(kAlways, 1),
                         std::string(SLIPSTREAM_FIXTURES) + "/qwen35.gguf");
  const std::vector<Outcome> outcomes = run_all(engine, long_requests(engine.vocabulary(), 1, 40));
  EXPECT_EQ(outcomes[0].tokens.size(), 40U);
  EXPECT_EQ(engine.runner().stats().speculation.n_drafts, 0);
}

TEST(Speculation, UsageSaysWhatDraftsSaved) {
  RunnerOnNeedles engine("f16", 2048, options_with(kAlways, 1));
  const RequestId id = engine.ask(greedy_request(std::vector<Token>(60, 200), 80));
  engine.run();
  const Usage& usage = engine.outcomes[id].ending->usage;
  const RunnerStats stats = engine.runner().stats();
  EXPECT_EQ(usage.n_generated, 80);
  EXPECT_EQ(usage.n_drafted, stats.speculation.n_drafted);
  EXPECT_EQ(usage.n_accepted, stats.speculation.n_accepted);
  EXPECT_EQ(stats.n_generated_tokens, 80);
}

}  // namespace
}  // namespace slipstream
