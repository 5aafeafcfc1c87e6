// Tests every byte that clients of the Responses API get for a turn's steps, except ids and times.
#include "server/writers/responses_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "server/writers/turn_steps_test_support.h"

namespace slipstream {
namespace {

using Delta = ChatDelta::Kind;

ChatDeltas call_of(const char* name, bool is_complete = true) {
  return {{.kind = Delta::kCallBegin, .text = name, .call_idx = 0},
          {.kind = Delta::kCallArguments, .text = "{}", .call_idx = 0},
          {.kind = Delta::kCallEnd, .call_idx = 0, .complete = is_complete}};
}

ResponsesWriter::Options response_options() {
  return {.model = "m", .echo = R"("store":true)", .spaces = {{"g", "space"}}};
}

std::string response(const std::string& status, const std::string& output,
                     const std::string& usage = "null", const std::string& error = "null") {
  const bool is_cut = status == "incomplete";
  return R"({"id":"resp_ID","object":"response","created_at":0,"status":")" + status +
         R"(","completed_at":)" + (status == "completed" ? "0" : "null") + R"(,"error":)" + error +
         R"(,"incomplete_details":)" + (is_cut ? R"({"reason":"max_output_tokens"})" : "null") +
         R"(,"model":"m","store":true,"output":)" + output + R"(,"usage":)" + usage + "}";
}

std::string event(const std::string& type, int number, const std::string& fields) {
  return "event: " + type + "\ndata: {\"type\":\"" + type +
         "\",\"sequence_number\":" + std::to_string(number) + "," + fields + "}\n\n";
}

const std::string kUsage =
    R"({"input_tokens":5,"input_tokens_details":{"cached_tokens":3,"recomputed_tokens":1},"output_tokens":2,)"
    R"("output_tokens_details":{"reasoning_tokens":0},"total_tokens":7})";

std::string message(const std::string& id, const std::string& status, const std::string& text) {
  return R"({"id":"msg_)" + id + R"(","type":"message","status":")" + status +
         R"(","role":"assistant","content":[{"type":"output_text","text":")" + text +
         R"(","annotations":[],"logprobs":[]}]})";
}

TEST(ResponsesWriter, AStreamTellsAllThatChanges) {
  ResponsesWriter writer(response_options());
  const std::string begun = R"("response":)" + response("in_progress", "[]");
  EXPECT_EQ(without_ids(writer.begin()),
            event("response.created", 0, begun) + event("response.in_progress", 1, begun));
  const std::string place = R"("item_id":"msg_ID0000","output_index":0,"content_index":0,)";
  EXPECT_EQ(
      without_ids(writer.write(step_of({{.kind = Delta::kContent, .text = "a"}}))),
      event("response.output_item.added", 2,
            R"("output_index":0,"item":{"id":"msg_ID0000","type":"message",)"
            R"("status":"in_progress","role":"assistant","content":[]})") +
          event(
              "response.content_part.added", 3,
              place + R"("part":{"type":"output_text","text":"","annotations":[],"logprobs":[]})") +
          event("response.output_text.delta", 4, place + R"("delta":"a","logprobs":[])"));
  EXPECT_EQ(writer.write(step_of({})), "");
  // Clients replace their state by this response.
  EXPECT_EQ(without_ids(writer.ping()),
            event("response.in_progress", 5,
                  R"("response":)" +
                      response("in_progress", "[" + message("ID0000", "in_progress", "a") + "]")));
  EXPECT_EQ(without_ids(writer.write(last_step({.reason = TurnEnd::Reason::kStop}))),
            event("response.output_text.done", 6, place + R"("text":"a","logprobs":[])") +
                event("response.content_part.done", 7,
                      place + R"("part":{"type":"output_text","text":"a","annotations":[],)"
                              R"("logprobs":[]})") +
                event("response.output_item.done", 8,
                      R"("output_index":0,"item":)" + message("ID0000", "completed", "a")));
  EXPECT_EQ(
      without_ids(writer.end({.n_prompt = 5, .n_cached = 3, .n_recomputed = 1, .n_generated = 2})),
      event("response.completed", 9,
            R"("response":)" +
                response("completed", "[" + message("ID0000", "completed", "a") + "]", kUsage)));
}

TEST(ResponsesWriter, ThoughtsAndCallsAreItems) {
  ResponsesWriter writer(response_options());
  (void)writer.begin();
  const std::string thought = R"("item_id":"rs_ID0000","output_index":0,"content_index":0,)";
  const std::string thoughts =
      without_ids(writer.write(step_of({{.kind = Delta::kReasoning, .text = "Hm"}})));
  EXPECT_EQ(thoughts, event("response.output_item.added", 2,
                            R"("output_index":0,"item":{"id":"rs_ID0000","type":"reasoning",)"
                            R"("status":"in_progress","summary":[],"content":[]})") +
                          event("response.content_part.added", 3,
                                thought + R"("part":{"type":"reasoning_text","text":""})") +
                          event("response.reasoning_text.delta", 4, thought + R"("delta":"Hm")"));
  const std::string call =
      R"("call_id":"call_ID","name":"g","arguments":"{}","namespace":"space"})";
  EXPECT_EQ(without_ids(writer.write(step_of(call_of("g")))),
            event("response.reasoning_text.done", 5, thought + R"("text":"Hm")") +
                event("response.content_part.done", 6,
                      thought + R"("part":{"type":"reasoning_text","text":"Hm"})") +
                event("response.output_item.done", 7,
                      R"("output_index":0,"item":{"id":"rs_ID0000","type":"reasoning",)"
                      R"("status":"completed","summary":[],"content":[{"type":"reasoning_text",)"
                      R"("text":"Hm"}]})") +
                event("response.output_item.added", 8,
                      R"("output_index":1,"item":{"id":"fc_ID0001","type":"function_call",)"
                      R"("status":"in_progress","call_id":"call_ID","name":"g","arguments":"",)"
                      R"("namespace":"space"})") +
                event("response.function_call_arguments.delta", 9,
                      R"("item_id":"fc_ID0001","output_index":1,"delta":"{}")") +
                event("response.function_call_arguments.done", 10,
                      R"("item_id":"fc_ID0001","output_index":1,"name":"g","arguments":"{}")") +
                event("response.output_item.done", 11,
                      R"("output_index":1,"item":{"id":"fc_ID0001","type":"function_call",)"
                      R"("status":"completed",)" +
                          call));
  EXPECT_EQ(writer.write(last_step({.reason = TurnEnd::Reason::kToolCalls})), "");
}

TEST(ResponsesWriter, AWholeAnswerIsTheResponse) {
  ResponsesWriter writer(response_options());
  writer.collect(step_of({{.kind = Delta::kContent, .text = "a"}}));
  writer.collect(step_of({{.kind = Delta::kContent, .text = "b"}}));
  writer.collect(step_of(call_of("f")));
  writer.collect(last_step({.reason = TurnEnd::Reason::kToolCalls}));
  const std::string whole =
      writer.whole({.n_prompt = 5, .n_cached = 3, .n_recomputed = 1, .n_generated = 2});
  EXPECT_EQ(without_ids(whole),
            response("completed",
                     "[" + message("ID0000", "completed", "ab") +
                         R"(,{"id":"fc_ID0001","type":"function_call","status":"completed",)"
                         R"("call_id":"call_ID","name":"f","arguments":"{}"}])",
                     kUsage));
  EXPECT_EQ(writer.response(), whole);
}

TEST(ResponsesWriter, WhatIsCutShortIsIncomplete) {
  ResponsesWriter writer(response_options());
  writer.collect(step_of({{.kind = Delta::kContent, .text = "a"}}));
  writer.collect(last_step({.reason = TurnEnd::Reason::kLength}));
  EXPECT_EQ(without_ids(
                writer.whole({.n_prompt = 5, .n_cached = 3, .n_recomputed = 1, .n_generated = 2})),
            response("incomplete", "[" + message("ID0000", "incomplete", "a") + "]", kUsage));
  ResponsesWriter streamed(response_options());
  (void)streamed.begin();
  (void)streamed.write(step_of(call_of("f", false)));
  (void)streamed.write(last_step({.reason = TurnEnd::Reason::kLength}));
  const std::string last = streamed.end({});
  EXPECT_TRUE(last.starts_with("event: response.incomplete\n")) << last;
  EXPECT_NE(last.find(R"("type":"function_call","status":"incomplete")"), std::string::npos);
}

TEST(ResponsesWriter, AFailureEndsIt) {
  ResponsesWriter writer(response_options());
  (void)writer.begin();
  EXPECT_EQ(without_ids(writer.write(ApiError{.status = 500, .message = "no memory"})),
            event("response.failed", 2,
                  R"("response":)" + response("failed", "[]", "null",
                                              R"({"code":"server_error","message":"no memory"})")));
  EXPECT_EQ(writer.end({}), "");
  EXPECT_EQ(writer.response(), "");
  ResponsesWriter other(response_options());
  EXPECT_NE(other.write(ApiError{.status = 429, .message = "x"}).find("rate_limit_exceeded"),
            std::string::npos);
  EXPECT_NE(other.write(ApiError{.message = "x", .code = "context_length_exceeded"})
                .find(R"("code":"context_length_exceeded")"),
            std::string::npos);
}

}  // namespace
}  // namespace slipstream
