// Tests every byte that OpenAI's clients get for the steps of a turn, except ids and times.
#include "server/writers/openai_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "server/writers/chat_writer.h"
#include "server/writers/completion_writer.h"
#include "server/writers/turn_steps_test_support.h"

namespace slipstream {
namespace {

using Kind = ChatDelta::Kind;

const ServedModel& model() {
  static const ServedModel model{.name = "m", .engine = nullptr};
  return model;
}

ChatDeltas one_call() {
  return {{.kind = Kind::kCallBegin, .text = "f", .call_idx = 0},
          {.kind = Kind::kCallArguments, .text = "{}", .call_idx = 0},
          {.kind = Kind::kCallEnd, .call_idx = 0}};
}

std::string chat_chunk(const std::string& delta, const std::string& rest) {
  return "data: {\"id\":\"chatcmpl-ID\",\"object\":\"chat.completion.chunk\",\"created\":0,"
         "\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":" +
         delta + ",\"logprobs\":null,\"finish_reason\":" + rest + "}]}\n\n";
}

TEST(ChatWriter, AStreamHasAnEventForEachDelta) {
  ChatWriter writer(model(), {});
  EXPECT_EQ(without_ids(writer.begin()),
            chat_chunk(R"({"role":"assistant","content":""})", "null"));
  EXPECT_EQ(without_ids(writer.write(step_of({{.kind = Kind::kReasoning, .text = "Hm"},
                                              {.kind = Kind::kContent, .text = "a"}}))),
            chat_chunk(R"({"reasoning_content":"Hm"})", "null") +
                chat_chunk(R"({"content":"a"})", "null"));
  EXPECT_EQ(
      without_ids(writer.write(step_of(one_call()))),
      chat_chunk(R"({"tool_calls":[{"index":0,"id":"call-ID","type":"function",)"
                 R"("function":{"name":"f","arguments":""}}]})",
                 "null") +
          chat_chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]})", "null"));
  EXPECT_EQ(writer.write(step_of({})), "");
  EXPECT_EQ(without_ids(writer.write(last_step({.reason = TurnEnd::Reason::kToolCalls}))),
            chat_chunk("{}", "\"tool_calls\""));
  EXPECT_EQ(writer.end({}), "data: [DONE]\n\n");
}

TEST(ChatWriter, SaysWhereTheModelSaidNothing) {
  ChatWriter writer(model(), {});
  EXPECT_EQ(without_ids(
                writer.write(last_step({.reason = TurnEnd::Reason::kStop, .said_nothing = true}))),
            chat_chunk("{}", "\"stop\",\"notice\":\"The model ended its answer without a word\""));
}

TEST(ChatWriter, AFailureIsAnEvent) {
  ChatWriter writer(model(), {});
  EXPECT_TRUE(writer.write(ApiError{.status = 500, .message = "no memory"})
                  .starts_with("data: {\"error\":{"));
}

TEST(ChatWriter, AWholeAnswerIsWhatWasCollected) {
  ChatWriter writer(model(), {});
  writer.collect(step_of({{.kind = Kind::kContent, .text = "a"}}));
  writer.collect(step_of({{.kind = Kind::kContent, .text = "b"}}));
  writer.collect(step_of(one_call()));
  writer.collect(last_step({.reason = TurnEnd::Reason::kToolCalls}));
  EXPECT_EQ(without_ids(writer.whole({.n_prompt = 5,
                                      .n_cached = 3,
                                      .n_recomputed = 1,
                                      .n_generated = 2,
                                      .n_reasoning = 1,
                                      .prompt_time = std::chrono::milliseconds(8),
                                      .generation_time = std::chrono::milliseconds(4)})),
            R"({"id":"chatcmpl-ID","object":"chat.completion","created":0,"model":"m","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":"ab","refusal":null,)"
            R"("tool_calls":[{"id":"call-ID","type":"function","function":)"
            R"({"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],)"
            R"("usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,)"
            R"("prompt_tokens_details":{"cached_tokens":3,"recomputed_tokens":1},)"
            R"("completion_tokens_details":{"reasoning_tokens":1}},)"
            R"("timings":{"cache_n":3,"prompt_n":2,"prompt_ms":8.0,"prompt_per_token_ms":4.0,)"
            R"("prompt_per_second":250.0,"predicted_n":2,"predicted_ms":4.0,)"
            R"("predicted_per_token_ms":2.0,"predicted_per_second":500.0}})");
}

TEST(ChatWriter, EachChunkHasTimingsIfAskedFor) {
  GenerationOptions options;
  options.wants_timings = true;
  ChatWriter writer(model(), options);
  EXPECT_FALSE(writer.begin().contains("timings"));
  TurnStep step = step_of({{.kind = Kind::kContent, .text = "a"}});
  step.usage = {.n_prompt = 4, .n_cached = 3, .n_generated = 1};
  const std::string chunk = writer.write(std::move(step));
  // The rate is 0 if the time is 0.
  EXPECT_TRUE(chunk.contains(R"("timings":{"cache_n":3,"prompt_n":1,"prompt_ms":0.0,)"
                             R"("prompt_per_token_ms":0.0,"prompt_per_second":0.0,)"
                             R"("predicted_n":1,"predicted_ms":0.0,)"))
      << chunk;
}

TEST(ChatWriter, UsageSaysHowManyTurnsLeft) {
  GenerationOptions options;
  options.wants_usage_in_stream = true;
  ChatWriter writer(model(), options);
  EXPECT_FALSE(writer.end({}).contains("dropped_turns"));
  EXPECT_FALSE(writer.whole({}).contains("dropped_turns"));
  writer.set_turns_dropped(3);
  EXPECT_TRUE(writer.end({}).contains(R"("recomputed_tokens":0,"dropped_turns":3})"));
  EXPECT_TRUE(writer.whole({}).contains(R"("recomputed_tokens":0,"dropped_turns":3})"));
}

TEST(ChatWriter, TimingsNameDraftsIfThereWereSome) {
  ChatWriter writer(model(), {});
  EXPECT_TRUE(writer.whole({.n_generated = 9, .n_drafted = 7, .n_accepted = 5})
                  .contains(R"("draft_n":7,"draft_n_accepted":5}})"));
  EXPECT_FALSE(writer.whole({.n_generated = 9}).contains("draft"));
}

TEST(ChatWriter, EachBodyHasTheFingerprintOfTheModel) {
  const ServedModel known{.name = "m", .engine = nullptr, .system_fingerprint = "fp_1"};
  ChatWriter writer(known, {});
  EXPECT_TRUE(writer.begin().contains(R"("system_fingerprint":"fp_1")"));
  EXPECT_TRUE(writer.whole({}).contains(R"("system_fingerprint":"fp_1")"));
}

TEST(CompletionWriter, StreamsTextAndItsUsage) {
  CompletionRequest request;
  request.options.wants_usage_in_stream = true;
  CompletionWriter writer(model(), request, {{1, 2}});
  const std::string head =
      "data: {\"id\":\"cmpl-ID\",\"object\":\"text_completion\",\"created\":0,\"model\":\"m\","
      "\"choices\":[";
  EXPECT_EQ(writer.begin(), "");
  EXPECT_EQ(without_ids(writer.write(step_of({{.kind = Kind::kContent, .text = "a"}}))),
            head + R"({"index":0,"text":"a","logprobs":null,"finish_reason":null}],"usage":null})"
                   "\n\n");
  EXPECT_EQ(writer.write(step_of({})), "");
  EXPECT_EQ(without_ids(writer.write(last_step({.reason = TurnEnd::Reason::kLength}))),
            head +
                R"({"index":0,"text":"","logprobs":null,"finish_reason":"length"}],"usage":null})"
                "\n\n");
  EXPECT_EQ(without_ids(writer.end({.n_prompt = 2, .n_generated = 1})),
            head + R"(],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,)"
                   R"("prompt_tokens_details":{"cached_tokens":0,"recomputed_tokens":0},)"
                   R"("completion_tokens_details":{"reasoning_tokens":0}},)"
                   R"("timings":{"cache_n":0,"prompt_n":2,"prompt_ms":0.0,)"
                   R"("prompt_per_token_ms":0.0,"prompt_per_second":0.0,"predicted_n":1,)"
                   R"("predicted_ms":0.0,"predicted_per_token_ms":0.0,)"
                   R"("predicted_per_second":0.0}})"
                   "\n\ndata: [DONE]\n\n");
}

}  // namespace
}  // namespace slipstream
