// Tests every byte that Anthropic's clients get for the steps of a turn, except ids.
#include "server/writers/messages_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "server/writers/turn_steps_test_support.h"

namespace slipstream {
namespace {

using Kind = ChatDelta::Kind;

MessagesWriter::Options options(bool wants_cache = false) {
  return {.model = "m", .n_prompt = 7, .wants_cache = wants_cache};
}

std::string named_event(const std::string& type, const std::string& rest) {
  return "event: " + type + "\ndata: {\"type\":\"" + type + "\"" + rest + "}\n\n";
}

std::string delta(int index, const std::string& json) {
  return named_event("content_block_delta",
                     ",\"index\":" + std::to_string(index) + ",\"delta\":" + json);
}

std::string stop(int index) {
  return named_event("content_block_stop", ",\"index\":" + std::to_string(index));
}

ChatDeltas a_call(int idx) {
  return {{.kind = Kind::kCallBegin, .text = "f", .call_idx = idx},
          {.kind = Kind::kCallArguments, .text = "{\"a\"", .call_idx = idx},
          {.kind = Kind::kCallArguments, .text = ":1}", .call_idx = idx},
          {.kind = Kind::kCallEnd, .call_idx = idx}};
}

TEST(MessagesWriter, AStreamHasItsEventsInOrder) {
  MessagesWriter writer(options());
  EXPECT_EQ(without_ids(writer.begin()),
            named_event(
                "message_start",
                R"(,"message":{"id":"msg-ID","type":"message","role":"assistant","model":"m",)"
                R"("content":[],"stop_reason":null,"stop_sequence":null,"usage":{)"
                R"("input_tokens":7,"cache_creation_input_tokens":0,)"
                R"("cache_read_input_tokens":0,"recomputed_input_tokens":0,"output_tokens":0}})"));
  EXPECT_EQ(writer.ping(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  EXPECT_EQ(without_ids(writer.write(step_of({{.kind = Kind::kReasoning, .text = "Hm"},
                                              {.kind = Kind::kReasoning, .text = "."},
                                              {.kind = Kind::kContent, .text = "a"}}))),
            named_event(
                "content_block_start",
                R"(,"index":0,"content_block":{"type":"thinking","thinking":"","signature":""})") +
                delta(0, R"({"type":"thinking_delta","thinking":"Hm"})") +
                delta(0, R"({"type":"thinking_delta","thinking":"."})") +
                delta(0, R"({"type":"signature_delta","signature":"sig-ID"})") + stop(0) +
                named_event("content_block_start",
                            R"(,"index":1,"content_block":{"type":"text","text":""})") +
                delta(1, R"({"type":"text_delta","text":"a"})"));
  const auto call = [](int index) {
    return named_event(
               "content_block_start",
               ",\"index\":" + std::to_string(index) +
                   R"(,"content_block":{"type":"tool_use","id":"toolu-ID","name":"f","input":{}})") +
           delta(index, R"({"type":"input_json_delta","partial_json":"{\"a\""})") +
           delta(index, R"({"type":"input_json_delta","partial_json":":1}"})") + stop(index);
  };
  EXPECT_EQ(without_ids(writer.write(step_of(a_call(0)))), stop(1) + call(2));
  EXPECT_EQ(without_ids(writer.write(step_of(a_call(1)))), call(3));
  EXPECT_EQ(writer.write(last_step({.reason = TurnEnd::Reason::kToolCalls})), "");
  EXPECT_EQ(
      writer.end({.n_prompt = 7, .n_cached = 5, .n_recomputed = 1, .n_generated = 3}),
      named_event("message_delta",
                  R"(,"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{)"
                  R"("input_tokens":2,"cache_creation_input_tokens":0,)"
                  R"("cache_read_input_tokens":5,"recomputed_input_tokens":1,"output_tokens":3})") +
          named_event("message_stop", ""));
}

TEST(MessagesWriter, ABlockThatIsOpenEndsWithTheAnswer) {
  MessagesWriter writer(options());
  (void)writer.write(step_of({{.kind = Kind::kContent, .text = "a"}}));
  EXPECT_EQ(writer.write(last_step({.reason = TurnEnd::Reason::kLength})), stop(0));
  EXPECT_NE(writer.end({}).find("\"stop_reason\":\"max_tokens\""), std::string::npos);
}

TEST(MessagesWriter, NothingFollowsAFailure) {
  MessagesWriter writer(options());
  EXPECT_EQ(writer.write(ApiError{.status = 500, .message = "no memory"}),
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\","
            "\"message\":\"no memory\"}}\n\n");
  EXPECT_EQ(writer.end({}), "");
}

TEST(MessagesWriter, AWholeAnswerHasTheSameBlocks) {
  MessagesWriter writer(options(true));
  writer.collect(step_of({{.kind = Kind::kReasoning, .text = "H"}}));
  writer.collect(
      step_of({{.kind = Kind::kReasoning, .text = "m"}, {.kind = Kind::kContent, .text = "a"}}));
  writer.collect(step_of(a_call(0)));
  writer.collect(step_of(a_call(1)));
  writer.collect(last_step({.reason = TurnEnd::Reason::kToolCalls}));
  EXPECT_EQ(
      without_ids(
          writer.whole({.n_prompt = 7, .n_cached = 5, .n_recomputed = 1, .n_generated = 3})),
      R"({"id":"msg-ID","type":"message","role":"assistant","model":"m","content":[)"
      R"({"type":"thinking","thinking":"Hm","signature":"sig-ID"},)"
      R"({"type":"text","text":"a"},)"
      R"({"type":"tool_use","id":"toolu-ID","name":"f","input":{"a":1}},)"
      R"({"type":"tool_use","id":"toolu-ID","name":"f","input":{"a":1}}],)"
      R"("stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":0,)"
      R"("cache_creation_input_tokens":2,"cache_read_input_tokens":5,"recomputed_input_tokens":1,"output_tokens":3}})");
}

TEST(MessagesWriter, SaysWhichStopSequenceWasMet) {
  MessagesWriter writer(options());
  writer.collect(step_of({{.kind = Kind::kContent, .text = "a"}}));
  writer.collect(last_step({.reason = TurnEnd::Reason::kStop, .matched_stop = "END"}));
  EXPECT_NE(writer.whole({}).find(R"("stop_reason":"stop_sequence","stop_sequence":"END")"),
            std::string::npos);
}

}  // namespace
}  // namespace slipstream
