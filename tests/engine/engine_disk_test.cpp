// The engine on a real model: prefixes that come back from disk, and saved states of models whose
// state cannot be cut.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/prefixes/disk/disk_tier_test_support.h"
#include "runner_on_needles.h"

namespace slipstream {
namespace {

constexpr RunnerOptions kOnDisk{.n_sequences_max = 2,
                                .n_prefixes_max = 8,
                                .disk = {.idle_time = std::chrono::seconds(0), .n_tokens_min = 64}};

TEST_P(EngineOnEveryScheme, APrefixIsThereAgainAfterARestart) {
  const TemporaryDirectory directory;
  const Needle needle = make_needle(3);
  const auto answer = [&](std::int64_t& n_computed) {
    RunnerOnNeedles engine(GetParam(), 4096, kOnDisk, SLIPSTREAM_NEEDLE_MODEL, directory.path());
    const std::string text = engine.answer(needle.prompt);
    n_computed = engine.runner().stats().n_prompt_tokens;
    return text;
  };
  std::int64_t n_computed = 0;
  EXPECT_TRUE(needle.is_answered_by(answer(n_computed)));
  EXPECT_GT(n_computed, 256) << "of one slice nothing would be learnt";
  const std::string again = answer(n_computed);
  EXPECT_TRUE(needle.is_answered_by(again)) << again;
  EXPECT_EQ(n_computed, 1) << "only the last token";
}

TEST(EngineOnDisk, TheStateOfAnotherSchemeOrADamagedOneIsComputedAgain) {
  const TemporaryDirectory directory;
  const Needle needle = make_needle(3);
  const auto n_computed = [&](const std::string& kv) {
    RunnerOnNeedles engine(kv, 4096, kOnDisk, SLIPSTREAM_NEEDLE_MODEL, directory.path());
    EXPECT_TRUE(needle.is_answered_by(engine.answer(needle.prompt)));
    return engine.runner().stats().n_prompt_tokens;
  };
  const std::int64_t n_prompt = n_computed("turbo8");
  EXPECT_EQ(n_computed("f16"), n_prompt);
  EXPECT_EQ(n_computed("turbo8"), 1);
  for (const auto& file : std::filesystem::directory_iterator(directory.path())) {
    std::vector<char> bytes = file_bytes(file.path());
    if (bytes.empty()) continue;  // the lock
    bytes[bytes.size() / 2] ^= 1;
    write_file_bytes(file.path(), bytes);
  }
  EXPECT_EQ(n_computed("turbo8"), n_prompt);
}

TEST(EngineOnDisk, OthersGenerateWhileAPrefixIsLoadedAndItsRequestMayBeCancelled) {
  const TemporaryDirectory directory;
  const Needle stored = make_needle(3);
  {
    RunnerOnNeedles engine("turbo4", 4096, kOnDisk, SLIPSTREAM_NEEDLE_MODEL, directory.path());
    (void)engine.answer(stored.prompt);
  }
  RunnerOnNeedles engine("turbo4", 4096, kOnDisk, SLIPSTREAM_NEEDLE_MODEL, directory.path());
  const Needle other = make_needle(4);
  const RequestId first = engine.ask(other.prompt, 12);
  engine.runner().step();
  const RequestId cancelled = engine.ask(stored.prompt, 12);
  EXPECT_EQ(engine.runner().stats().n_running, 1);
  EXPECT_EQ(engine.runner().stats().n_waiting, 1) << "it is held while its prefix is read";
  engine.runner().step();
  engine.runner().cancel(cancelled);
  EXPECT_EQ(engine.outcomes[cancelled].ending->reason, FinishReason::kCancelled);
  const RequestId second = engine.ask(stored.prompt, 12);
  engine.run();
  EXPECT_TRUE(other.is_answered_by(engine.outcomes[first].text));
  EXPECT_TRUE(stored.is_answered_by(engine.outcomes[second].text));
  EXPECT_EQ(engine.outcomes[second].ending->usage.n_cached,
            engine.outcomes[second].ending->usage.n_prompt - 1);
}

// Cells for one prompt only: each drives the other out, and the disk brings it back.
TEST(EngineOnDisk, WhatWasEvictedComesBackFromDisk) {
  const TemporaryDirectory directory;
  RunnerOnNeedles engine("turbo8v4", 768, kOnDisk, SLIPSTREAM_NEEDLE_MODEL, directory.path());
  std::int64_t n_computed = 0;
  for (int round = 0; round < 3; ++round) {
    for (const unsigned i : {1U, 2U}) {
      const Needle needle = make_needle(i);
      EXPECT_TRUE(needle.is_answered_by(engine.answer(needle.prompt))) << round;
    }
    if (round == 0) n_computed = engine.runner().stats().n_prompt_tokens;
  }
  EXPECT_LT(engine.runner().stats().n_prompt_tokens, n_computed + n_computed / 4);
}

// A recurrent state cannot be cut: the second prompt starts where the first's state was saved.
TEST(EngineOnHybrid, ContinuesFromASavedState) {
  const std::string path = SLIPSTREAM_FIXTURES "/qwen35.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is made in the release build only";
  RunnerOnNeedles engine("f16", 2048, {.n_sequences_max = 2, .n_prefixes_max = 2}, path);
  const std::string prompt = haystack().substr(0, 800);
  const std::string first = engine.answer(prompt, 24);
  const std::int64_t n_computed = engine.runner().stats().n_prompt_tokens;
  EXPECT_EQ(engine.answer(prompt, 24), first);
  EXPECT_EQ(engine.runner().stats().n_prompt_tokens, n_computed + 1) << "only the last token";
  // Another end: its beginning is no state that was saved.
  (void)engine.answer(prompt.substr(0, 400) + " and more", 4);
  EXPECT_GT(engine.runner().stats().n_prompt_tokens, n_computed + 50);
}

// libllama saves only what the last token of a slice sees.
TEST(EngineOnWindows, APrefixLongerThanTheWindowIsThereAgainAfterARestart) {
  for (const char* shape : {"gemma3", "gpt-oss"}) {
    const std::string path = std::string(SLIPSTREAM_FIXTURES "/") + shape + ".gguf";
    if (!std::filesystem::exists(path))
      GTEST_SKIP() << path << " is made in the release build only";
    const TemporaryDirectory directory;
    std::vector<std::string> answers;
    for (int i = 0; i < 2; ++i) {
      RunnerOnNeedles engine("f16", 4096, kOnDisk, path, directory.path());
      const RequestId id = engine.ask(haystack(), 12);
      engine.run();
      answers.push_back(engine.outcomes[id].text);
      const Usage usage = engine.outcomes[id].ending->usage;
      EXPECT_EQ(usage.n_cached, i == 0 ? 0 : usage.n_prompt - 1) << shape;
    }
    EXPECT_EQ(answers[0], answers[1]) << shape;
  }
}

// The end of a prompt may be of no use to the next one, the boundaries are.
TEST(EngineOnHybrid, SavesStatesAtBoundaries) {
  const std::string path = SLIPSTREAM_FIXTURES "/qwen35.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is made in the release build only";
  const TemporaryDirectory directory;
  constexpr int kSystem = 1003;
  // The same system prompt, another question, and a last token that is not in the next prompt.
  const auto cached = [&](RunnerOnNeedles& engine, int n_question, Token question, Token last) {
    std::vector<Token> prompt = *engine.vocabulary().tokenize(haystack() + haystack(), false, true);
    prompt.resize(kSystem);
    prompt.resize(static_cast<std::size_t>(kSystem + n_question), question);
    prompt.resize(prompt.size() + 3, last);
    const RequestId id = engine.ask({.prompt = std::move(prompt),
                                     .n_tokens_max = 4,
                                     .boundaries = {kSystem, kSystem + n_question}});
    engine.run();
    return engine.outcomes[id].ending->usage.n_cached;
  };
  {
    RunnerOnNeedles engine("f16", 4096, kOnDisk, path, directory.path());
    EXPECT_EQ(cached(engine, 40, 300, 7), 0);
    EXPECT_EQ(cached(engine, 50, 300, 8), kSystem + 40) << "where the last message ended";
    EXPECT_EQ(cached(engine, 40, 301, 8), kSystem) << "where the user spoke first";
  }
  RunnerOnNeedles restarted("f16", 4096, kOnDisk, path, directory.path());
  EXPECT_EQ(cached(restarted, 60, 300, 9), kSystem + 50) << "both are on disk";
  EXPECT_EQ(cached(restarted, 60, 302, 8), kSystem);
}

// libllama may fail after it has advanced a state, and a state does not go back.
TEST(EngineOnHybrid, AStateThatAFailedBatchAdvancedIsNotUsedAgain) {
  const std::string path = SLIPSTREAM_FIXTURES "/qwen35.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is made in the release build only";
  const RunnerOptions options{.n_sequences_max = 2, .n_prefixes_max = 2};
  const std::string prompt = haystack().substr(0, 800);
  RunnerOnNeedles alone("f16", 2048, options, path);
  const std::string expected = alone.answer(prompt, 24);
  RunnerOnNeedles engine("f16", 2048, options, path);
  bool has_failed = false;
  engine.runner().set_fault([&](const llama_batch& batch) {
    if (std::exchange(has_failed, true)) return 0;
    EXPECT_EQ(llama_decode(engine.context(), batch), 0);
    return -3;
  });
  const RequestId failed = engine.ask(prompt, 24);
  engine.run();
  EXPECT_EQ(engine.outcomes[failed].ending->reason, FinishReason::kFailed);
  EXPECT_EQ(engine.answer(prompt, 24), expected);
}

TEST(EngineOnHybrid, ConversationsShareTheirSystemPrompt) {
  const std::string path = SLIPSTREAM_FIXTURES "/qwen35.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is made in the release build only";
  constexpr int kSystem = 1040;
  // The same beginning, and so many more tokens.
  const auto talk = [](RunnerOnNeedles& engine, int n_more, Token more) {
    std::vector<Token> prompt = *engine.vocabulary().tokenize(haystack() + haystack(), false, true);
    EXPECT_GE(prompt.size(), std::size_t{kSystem});
    prompt.resize(kSystem);
    prompt.resize(static_cast<std::size_t>(kSystem + n_more), more);
    const RequestId id = engine.ask(std::move(prompt), 8);
    engine.run();
    return engine.outcomes[id];
  };
  const RunnerOptions options{.n_sequences_max = 2, .n_prefixes_max = 2};
  RunnerOnNeedles engine("f16", 4096, options, path);
  EXPECT_EQ(talk(engine, 40, 300).ending->usage.n_cached, 0);
  const Outcome second = talk(engine, 900, 301);
  EXPECT_GE(second.ending->usage.n_cached, kSystem * 9 / 10);
  RunnerOnNeedles other("f16", 4096, options, path);
  EXPECT_EQ(talk(other, 900, 301).tokens, second.tokens) << "it goes on from another state";
  // Where there is no room for states, there are none.
  RunnerOptions small = options;
  small.checkpoint_bytes_max = 1;
  RunnerOnNeedles without("f16", 4096, small, path);
  (void)talk(without, 40, 300);
  EXPECT_EQ(talk(without, 900, 301).ending->usage.n_cached, 0);
}

TEST(EngineOnHybrid, ASavedStateSurvivesARestart) {
  const std::string path = SLIPSTREAM_FIXTURES "/qwen35.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is made in the release build only";
  const TemporaryDirectory directory;
  const std::string prompt = haystack().substr(0, 800);
  std::vector<std::string> answers;
  std::int64_t n_computed = 0;
  for (int start = 0; start < 2; ++start) {
    RunnerOnNeedles engine("turbo8", 2048, kOnDisk, path, directory.path());
    answers.push_back(engine.answer(prompt, 24));
    n_computed = engine.runner().stats().n_prompt_tokens;
  }
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(n_computed, 1) << "only the last token";
}

}  // namespace
}  // namespace slipstream
