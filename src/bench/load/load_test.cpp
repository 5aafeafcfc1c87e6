#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/utf8.h"
#include "bench/load/event_lines.h"
#include "bench/load/load_run.h"
#include "bench/load/load_summary.h"

namespace slipstream::bench {
namespace {

RequestTrace answered(double first, double step, int n_tokens) {
  RequestTrace trace{.n_clients = 2, .n_tokens = n_tokens};
  for (int i = 0; i < n_tokens; ++i) trace.events_s.push_back(first + step * i);
  trace.ended_s = trace.events_s.back();
  return trace;
}

TEST(EventLines, AreTheSameInWhateverPiecesTheyCome) {
  const std::string stream = "data: {\"a\": 1}\r\n\r\n: a comment\ndata:[DONE]\n\nrest";
  for (std::size_t size = 1; size <= stream.size(); ++size) {
    EventLines lines;
    std::vector<std::string> data;
    for (std::size_t at = 0; at < stream.size(); at += size) {
      lines.take(std::string_view(stream).substr(at, size),
                 [&](std::string_view line) { data.emplace_back(line); });
    }
    EXPECT_EQ(data, (std::vector<std::string>{"{\"a\": 1}", "[DONE]"})) << size;
    EXPECT_EQ(lines.rest(), "rest");
  }
}

TEST(Load, PromptsDiffer) {
  const LoadTask task{.text = "The quick brown fox jumps over the lazy dog. ",
                      .n_prompt_bytes = 200};
  std::set<std::string> prompts;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(prompt_of(task, i).size(), 200U);
    prompts.insert(prompt_of(task, i).substr(0, 60));
  }
  EXPECT_EQ(prompts.size(), 100U);
}

TEST(Load, PromptsAreNotCutWithinACharacter) {
  const LoadTask task{.text = "äöü", .n_prompt_bytes = 101};
  for (int i = 0; i < 12; ++i) {
    const std::string prompt = prompt_of(task, i);
    EXPECT_NO_THROW((void)nlohmann::json(prompt).dump()) << i;
    EXPECT_EQ(prompt.find(kReplacementCharacter), std::string::npos) << i;
    EXPECT_GE(prompt.size(), 100U) << i;  // only what was cut is missing
  }
}

TEST(Load, ATextThatIsNoUtf8CanBeSent) {
  for (const char* text : {"\x80\x80\x80", "caf\xE9 au lait ", "\xC3"}) {
    const LoadTask task{.text = text, .n_prompt_bytes = 101};
    EXPECT_NO_THROW((void)nlohmann::json(prompt_of(task, 3)).dump()) << text;
  }
}

TEST(LoadSummary, TakesTimesFromAnswers) {
  const std::vector<RequestTrace> traces = {answered(0.1, 0.02, 11), answered(0.3, 0.02, 11)};
  const LoadSummary load = summarise_load(traces, {});
  EXPECT_EQ(load.n_answered, 2);
  EXPECT_NEAR(load.first_token_ms.p50, 200, 1e-6);
  EXPECT_NEAR(load.between_ms.p99, 20, 1e-6);
  EXPECT_NEAR(load.per_token_ms.p50, 20, 1e-6);
  EXPECT_NEAR(load.seconds, 0.5, 1e-9);
  EXPECT_NEAR(load.tokens_per_s, 44, 1e-6);
}

TEST(LoadSummary, GoodputCountsWhatMeetsEveryLimit) {
  const std::vector<RequestTrace> traces = {answered(0.1, 0.02, 11), answered(0.3, 0.02, 11)};
  EXPECT_NEAR(summarise_load(traces, *parse_limits("ttft=200")).goodput, 2, 1e-6);
  EXPECT_NEAR(summarise_load(traces, *parse_limits("ttft=200,tpot=10")).goodput, 0, 1e-6);
}

TEST(LoadSummary, AFailureIsCountedAndNotTimed) {
  std::vector<RequestTrace> traces = {answered(0.1, 0.02, 11), {.error = "HTTP 429"}};
  const LoadSummary load = summarise_load(traces, {});
  EXPECT_EQ(load.n_failed, 1);
  EXPECT_EQ(load.an_error, "HTTP 429");
  EXPECT_NEAR(load.first_token_ms.p99, 100, 1e-6);
}

TEST(LoadSummary, LimitsThatAreNoneAreRefused) {
  for (const char* text : {"ttft", "ttft=", "ttft=x", "ttft=-1", "speed=3", "ttft=1,"}) {
    EXPECT_FALSE(parse_limits(text)) << text;
  }
}

}  // namespace
}  // namespace slipstream::bench
