// What OpenAI's clients get for the steps of a turn, to the byte but for ids and times.
#include "server/writers/openai_writer.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "server/writers/chat_writer.h"
#include "server/writers/completion_writer.h"

namespace slipstream {
namespace {

using Kind = ChatDelta::Kind;

const ServedModel& model() {
  static const ServedModel model{.name = "m", .engine = nullptr};
  return model;
}

// Without what differs from answer to answer.
std::string plain(const std::string& text) {
  const std::string ids = std::regex_replace(text, std::regex("-[0-9a-f]{32}"), "-ID");
  return std::regex_replace(ids, std::regex("\"created\":[0-9]+"), "\"created\":0");
}

TurnStep step(ChatDeltas deltas) { return {.choice = 0, .deltas = std::move(deltas)}; }
TurnStep last_step(TurnEnd::Reason reason, bool said_nothing = false) {
  return {.choice = 0, .end = TurnEnd{.reason = reason, .said_nothing = said_nothing}};
}

ChatDeltas a_call() {
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
  EXPECT_EQ(plain(writer.begin()), chat_chunk(R"({"role":"assistant","content":""})", "null"));
  EXPECT_EQ(plain(writer.write(step({{.kind = Kind::kReasoning, .text = "Hm"},
                                     {.kind = Kind::kContent, .text = "a"}}))),
            chat_chunk(R"({"reasoning_content":"Hm"})", "null") +
                chat_chunk(R"({"content":"a"})", "null"));
  EXPECT_EQ(
      plain(writer.write(step(a_call()))),
      chat_chunk(R"({"tool_calls":[{"index":0,"id":"call-ID","type":"function",)"
                 R"("function":{"name":"f","arguments":""}}]})",
                 "null") +
          chat_chunk(R"({"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]})", "null"));
  EXPECT_EQ(writer.write(step({})), "");
  EXPECT_EQ(plain(writer.write(last_step(TurnEnd::Reason::kToolCalls))),
            chat_chunk("{}", "\"tool_calls\""));
  EXPECT_EQ(writer.end({}), "data: [DONE]\n\n");
}

TEST(ChatWriter, SaysWhereTheModelSaidNothing) {
  ChatWriter writer(model(), {});
  EXPECT_EQ(plain(writer.write(last_step(TurnEnd::Reason::kStop, true))),
            chat_chunk("{}", "\"stop\",\"notice\":\"The model ended its answer without a word\""));
}

TEST(ChatWriter, AFailureIsAnEvent) {
  ChatWriter writer(model(), {});
  EXPECT_TRUE(writer.write(ApiError{.status = 500, .message = "no memory"})
                  .starts_with("data: {\"error\":{"));
}

TEST(ChatWriter, AWholeAnswerIsWhatWasCollected) {
  ChatWriter writer(model(), {});
  writer.collect(step({{.kind = Kind::kContent, .text = "a"}}));
  writer.collect(step({{.kind = Kind::kContent, .text = "b"}}));
  writer.collect(step(a_call()));
  writer.collect(last_step(TurnEnd::Reason::kToolCalls));
  EXPECT_EQ(plain(writer.whole({.n_prompt = 5, .n_cached = 3, .n_generated = 2})),
            R"({"id":"chatcmpl-ID","object":"chat.completion","created":0,"model":"m","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":"ab","refusal":null,)"
            R"("tool_calls":[{"id":"call-ID","type":"function","function":)"
            R"({"name":"f","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],)"
            R"("usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,)"
            R"("prompt_tokens_details":{"cached_tokens":3}}})");
}

TEST(CompletionWriter, StreamsTextAndItsUsage) {
  CompletionRequest request;
  request.options.wants_usage_in_stream = true;
  CompletionWriter writer(model(), request, {{1, 2}});
  const std::string head =
      "data: {\"id\":\"cmpl-ID\",\"object\":\"text_completion\",\"created\":0,\"model\":\"m\","
      "\"choices\":[";
  EXPECT_EQ(writer.begin(), "");
  EXPECT_EQ(plain(writer.write(step({{.kind = Kind::kContent, .text = "a"}}))),
            head + R"({"index":0,"text":"a","logprobs":null,"finish_reason":null}]})"
                   "\n\n");
  EXPECT_EQ(writer.write(step({})), "");
  EXPECT_EQ(plain(writer.write(last_step(TurnEnd::Reason::kLength))),
            head + R"({"index":0,"text":"","logprobs":null,"finish_reason":"length"}]})"
                   "\n\n");
  EXPECT_EQ(plain(writer.end({.n_prompt = 2, .n_generated = 1})),
            head + R"(],"usage":{"prompt_tokens":2,"completion_tokens":1,"total_tokens":3,)"
                   R"("prompt_tokens_details":{"cached_tokens":0}}})"
                   "\n\ndata: [DONE]\n\n");
}

}  // namespace
}  // namespace slipstream
