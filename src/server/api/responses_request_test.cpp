// Tests that requests of the Responses API become the same requests of the chat API, and that
// refusals name the field.
#include "server/api/responses_request.h"

#include <gtest/gtest.h>

#include <string>

#include "server/api/response_items.h"
#include "server/api/responses_error.h"

namespace slipstream {
namespace {

class FakePast final : public PastResponses {
 public:
  Json conversation(std::string_view id) override {
    if (id != "resp_1") return {};
    return Json::parse(R"([{"role": "user", "content": "a"},
                           {"type": "message", "id": "msg_7", "role": "assistant",
                            "content": [{"type": "output_text", "text": "b"}]}])");
  }
  Json item(std::string_view id) override {
    if (id != "fc_1") return {};
    return Json::parse(R"({"type": "function_call", "call_id": "c", "name": "f",
                           "arguments": "{}"})");
  }
};

ApiResult<ResponsesRequest> read_response(const std::string& body) {
  Json json = Json::parse(body);
  FakePast past;
  return read_responses_request(json, past);
}

// The chat messages that a body with this input becomes.
std::string messages_of_input(const std::string& input, const std::string& more = "") {
  const auto request = read_response(R"({"input": )" + input + more + "}");
  return request ? dump(request->chat.messages) : request.error().message;
}

ApiError refusal_of_response(const std::string& body) {
  const auto request = read_response(body);
  EXPECT_FALSE(request) << body;
  return request ? ApiError{} : request.error();
}

TEST(ResponsesRequest, InputIsATextOrMessages) {
  EXPECT_EQ(messages_of_input(R"("Hi")"), R"([{"role":"user","content":"Hi"}])");
  EXPECT_EQ(messages_of_input(R"([{"role": "user", "content": "Hi"},
                         {"type": "message", "role": "developer", "content": [
                           {"type": "input_text", "text": "a"}, {"type": "text", "text": "b"}]}])"),
            R"([{"role":"user","content":"Hi"},{"role":"system","content":"a\nb"}])");
  EXPECT_EQ(messages_of_input(R"("Hi")", R"(, "instructions": "Be brief")"),
            R"([{"role":"system","content":"Be brief"},{"role":"user","content":"Hi"}])");
  EXPECT_EQ(messages_of_input(R"([{"role": "assistant", "content": [
                          {"type": "refusal", "refusal": "No"}]}])"),
            R"([{"role":"assistant","content":"No"}])");
}

TEST(ResponsesRequest, WhatAnAssistantDidIsOneMessage) {
  EXPECT_EQ(messages_of_input(R"([{"role": "user", "content": "q"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x",
         "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant",
         "content": [{"type": "output_text", "text": "so"}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{\"a\":1}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2",
         "output": [{"type": "input_text", "text": "2"}]},
        {"type": "message", "role": "assistant", "content": "done"}])"),
            R"([{"role":"user","content":"q"},)"
            R"({"role":"assistant","content":"so","reasoning_content":"hm","tool_calls":[)"
            R"({"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},)"
            R"({"id":"c2","type":"function","function":{"name":"g","arguments":"{\"a\":1}"}}]},)"
            R"({"role":"tool","tool_call_id":"c1","content":"1"},)"
            R"({"role":"tool","tool_call_id":"c2","content":"2"},)"
            R"({"role":"assistant","content":"done"}])");
  EXPECT_EQ(messages_of_input(R"([{"type": "reasoning", "summary": [
                          {"type": "summary_text", "text": "short"}]},
                         {"role": "assistant", "content": "a"},
                         {"role": "assistant", "content": "b"}])"),
            R"([{"role":"assistant","content":"a\nb","reasoning_content":"short"}])");
}

TEST(ResponsesRequest, GoesOnWhereAnEarlierOneEnded) {
  const auto request = read_response(
      R"({"previous_response_id": "resp_1", "input": [{"role": "user", "content": "c"}]})");
  ASSERT_TRUE(request);
  EXPECT_EQ(dump(request->chat.messages),
            R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},)"
            R"({"role":"user","content":"c"}])");
  // Stored items keep their ids, for clients that list the items.
  EXPECT_EQ(Json::parse(request->items).size(), 3);
  EXPECT_EQ(Json::parse(request->items)[1]["id"], "msg_7");
  const ApiError gone = refusal_of_response(R"({"previous_response_id": "resp_2", "input": "x"})");
  EXPECT_EQ(gone.status, 400);
  EXPECT_EQ(gone.code, "previous_response_not_found");
  EXPECT_EQ(gone.param, "previous_response_id");
}

TEST(ResponsesRequest, AReferenceIsTheItem) {
  EXPECT_EQ(messages_of_input(R"([{"type": "item_reference", "id": "fc_1"}])"),
            R"([{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function",)"
            R"("function":{"name":"f","arguments":"{}"}}]}])");
  EXPECT_EQ(refusal_of_response(R"({"input": [{"type": "item_reference", "id": "fc_2"}]})").param,
            "input[0].id");
  EXPECT_EQ(refusal_of_response(R"({"input": [{"type": "item_reference", "id": [1]}]})").message,
            "'input[0].id' must be a string");
}

TEST(ResponsesRequest, LongIdsAreNotQuotedWhole) {
  const std::string id = R"(")" + std::string(1'000'000, 'r') + R"(")";
  for (const std::string& body : {R"({"input": "x", "previous_response_id": )" + id + "}",
                                  R"({"input": [{"type": "item_reference", "id": )" + id + "}]}"}) {
    EXPECT_LT(refusal_of_response(body).message.size(), 8'000);
  }
}

TEST(ResponsesRequest, KeepsNothingUnlessItMay) {
  EXPECT_EQ(read_response(R"({"input": "x", "store": false})")->items, "");
  EXPECT_EQ(
      read_response(R"({"input": [{"role": "user", "content": "x", "encrypted_content": "y"}]})")
          ->items,
      R"([{"role":"user","content":"x"}])");
}

TEST(ResponsesRequest, ToolsAreNestedAndOthersLeftOut) {
  const auto request =
      read_response(R"({"input": "x", "tool_choice": {"type": "function", "name": "g"},
    "parallel_tool_calls": false, "tools": [
    {"type": "web_search"}, {"type": "custom", "name": "patch"},
    {"type": "function", "name": "f", "description": "d", "strict": true,
     "parameters": {"type": "object"}},
    {"type": "namespace", "name": "s", "tools": [{"type": "function", "name": "g"},
                                                 {"type": "function", "name": "f"}]}]})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(dump(request->chat.tools),
            R"([{"type":"function","function":{"name":"f","description":"d","parameters":)"
            R"({"type":"object"}}},{"type":"function","function":{"name":"g","parameters":)"
            R"({"type":"object","properties":{}}}}])");
  EXPECT_EQ(request->chat.tool_choice.name, "g");
  EXPECT_FALSE(request->chat.tool_choice.allows_several);
  EXPECT_EQ(request->spaces.at("g"), "s");
  EXPECT_EQ(request->spaces.size(), 1);
}

TEST(ResponsesRequest, AllowedToolsAreTheOnlyOnes) {
  const auto request = read_response(R"({"input": "x", "tools": [
    {"type": "function", "name": "f"}, {"type": "function", "name": "g"}],
    "tool_choice": {"type": "allowed_tools", "mode": "required",
                    "tools": [{"type": "function", "name": "g"}]}})");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->chat.tools.size(), 1);
  EXPECT_EQ(request->chat.tools[0]["function"]["name"], "g");
  EXPECT_EQ(request->chat.tool_choice.kind, ToolChoice::Kind::kRequired);
}

TEST(ResponsesRequest, ReadsOptions) {
  const auto request =
      read_response(R"({"input": "x", "model": "m", "stream": true, "temperature": 0.5,
    "top_p": 0.9, "top_k": 4, "max_output_tokens": 7, "n": 3, "max_tokens": 1, "logprobs": 5,
    "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "truncation": "auto",
    "client_metadata": {"a": "b"}, "stream_options": {"include_obfuscation": false},
    "reasoning": {"effort": "high", "summary": "auto"},
    "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "p", "strict": true,
                                            "schema": {"type": "integer"}}}})");
  ASSERT_TRUE(request) << request.error().message;
  const GenerationOptions& options = request->chat.options;
  EXPECT_EQ(options.model, "m");
  EXPECT_TRUE(options.streams);
  EXPECT_EQ(options.n, 1);
  EXPECT_EQ(options.max_tokens, 7);
  EXPECT_TRUE(options.may_shorten);
  EXPECT_EQ(options.sampling.temperature, 0.5F);
  EXPECT_EQ(options.sampling.top_k, 4);
  EXPECT_EQ(request->chat.reasoning.effort, "high");
  EXPECT_EQ(dump(*request->chat.response_schema), R"({"type":"integer"})");
  const Json echo = Json::parse("{" + request->echo + "}");
  EXPECT_EQ(echo["temperature"], 0.5);
  EXPECT_EQ(echo["max_output_tokens"], 7);
  EXPECT_EQ(echo["text"]["format"]["schema"]["type"], "integer");
  EXPECT_EQ(echo["tools"], Json::array());
  EXPECT_EQ(echo["tool_choice"], "auto");
}

TEST(ResponsesRequest, NoEffortIsNoThinking) {
  const auto demand = [](const char* effort) {
    return read_response(std::string(R"({"input": "x", "reasoning": {"effort": )") + effort + "}}")
        ->chat.reasoning;
  };
  EXPECT_EQ(demand(R"("none")").is_on, false);
  EXPECT_EQ(demand(R"("minimal")").is_on, true);
  EXPECT_EQ(demand("null").is_on, std::nullopt);
}

TEST(ResponsesRequest, ImagesStayBetweenTexts) {
  Json body = Json::parse(R"({"input": [{"role": "user", "content": [
      {"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:x"}]},
      {"type": "function_call_output", "call_id": "c",
       "output": [{"type": "input_image", "image_url": "data:y"}]}]})");
  ItemMessages messages;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(messages.add(body["input"][i], i == 0 ? "input[0]" : "input[1]"));
  }
  EXPECT_EQ(dump(messages.take_all()),
            R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url",)"
            R"("image_url":{"url":"data:x"},"path":"input[0].content[1]"}]},{"role":"tool",)"
            R"("tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"data:y"},)"
            R"("path":"input[1].output[0]"}]}])");
}

TEST(ResponsesRequest, RefusalsNameTheField) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({})", "input"},
      {R"({"input": []})", "input"},
      {R"({"input": 3})", "input"},
      {R"({"input": [3]})", "input[0]"},
      {R"({"input": [{"content": "x"}]})", "input[0].role"},
      {R"({"input": [{"role": "tool", "content": "x"}]})", "input[0].role"},
      {R"({"input": [{"role": "user"}]})", "input[0].content"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})",
       "input[0].content[0]"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_image", "": "x"}]}]})",
       "input[0].content[0]"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"},
                                                  {"type": "input_file"}]}]})",
       "input[0].content[1]"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]})",
       "input[0].arguments"},
      {R"({"input": [{"type": "function_call_output", "output": "x"}]})", "input[0].call_id"},
      {R"({"input": [{"type": "function_call_output", "call_id": "c",
                      "output": [{"type": "input_image"}]}]})",
       "input[0].output[0]"},
      {R"({"input": [{"type": "computer_call"}]})", "input[0].type"},
      {R"({"input": "x", "background": true})", "background"},
      {R"({"input": "x", "conversation": "conv_1"})", "conversation"},
      {R"({"input": "x", "prompt": {"id": "p"}})", "prompt"},
      {R"({"input": "x", "max_output_tokens": 0})", "max_output_tokens"},
      {R"({"input": "x", "temperature": "hot"})", "temperature"},
      {R"({"input": "x", "reasoning": {"effort": 3}})", "reasoning.effort"},
      {R"({"input": "x", "reasoning": {"effort": "much"}})", "reasoning.effort"},
      {R"({"input": "x", "text": {"format": {"type": "xml"}}})", "text.format"},
      {R"({"input": "x", "text": {"format": {"type": "json_schema"}}})", "text.format"},
      {R"({"input": "x", "tools": [{"type": "function"}]})", "tools[0].name"},
      {R"({"input": "x", "tools": [{"name": "f"}]})", "tools[0]"},
      {R"({"input": "x", "tool_choice": "required"})", "tool_choice"},
      {R"({"input": "x", "tool_choice": {"type": "web_search"}})", "tool_choice"},
      {R"({"input": "x", "metadata": 3})", "metadata"}};
  for (const auto& [body, param] : cases) {
    const ApiError error = refusal_of_response(body);
    EXPECT_EQ(error.status, 400) << body;
    EXPECT_EQ(error.param, param) << body << "\n" << error.message;
    EXPECT_NE(error.message, "") << body;
  }
}

TEST(ResponsesRequest, ErrorsOfTheConversationHaveItsNames) {
  const auto in_words = [](const char* param, const char* message) {
    const ApiError error = in_words_of_responses({.message = message, .param = param},
                                                 {"tools[2]", "tools[3].tools[0]"});
    return error.param + "|" + error.message;
  };
  EXPECT_EQ(in_words("messages", "'messages' and 'tools' have"), "input|'input' and 'tools' have");
  EXPECT_EQ(in_words("response_format.json_schema.schema", "x"), "text.format.schema|x");
  EXPECT_EQ(in_words("max_tokens", "'response_format.type' x"),
            "max_output_tokens|'text.format.type' x");
  EXPECT_EQ(in_words("tools[1].function.name", "'tools[1].function.name' must"),
            "tools[3].tools[0].name|'tools[3].tools[0].name' must");
  EXPECT_EQ(in_words("tools[9].function", "tools[ x"), "tools[9].function|tools[ x");
  std::string long_name;
  for (int i = 0; i < 1'000'000; ++i) long_name += "'messages";
  EXPECT_LT(in_words_of_responses({.message = long_name}, {}).message.size(), 10'000);
}

}  // namespace
}  // namespace slipstream
