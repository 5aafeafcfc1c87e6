#include "server/api/messages_request.h"

#include <gtest/gtest.h>

#include <string>

#include "server/api/messages_error.h"

namespace slipstream {
namespace {

MessagesRequest read(const std::string& text) {
  Json body = Json::parse(text);
  ApiResult<MessagesRequest> request = read_messages_request(body);
  EXPECT_TRUE(request.has_value()) << request.error().message;
  return request ? std::move(*request) : MessagesRequest{};
}

ApiError refusal(const std::string& text) {
  Json body = Json::parse(text);
  const ApiResult<MessagesRequest> request = read_messages_request(body);
  EXPECT_FALSE(request.has_value()) << text;
  return request ? ApiError{} : request.error();
}

// A request with one message of the user. rest: the other fields.
std::string asking(const std::string& rest) {
  return R"({"max_tokens": 9, "messages": [{"role": "user", "content": "hi"}])" + rest + "}";
}

std::string messages_of(const std::string& messages) {
  return dump(read(R"({"max_tokens": 9, "messages": )" + messages + "}").chat.messages);
}

TEST(MessagesRequest, TextsStayTexts) {
  EXPECT_EQ(messages_of(R"([{"role": "user", "content": "hi"},
                            {"role": "assistant", "content": "ho"}])"),
            R"([{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}])");
}

TEST(MessagesRequest, TheSystemIsTheFirstMessage) {
  const std::string user = R"(,{"role":"user","content":"hi"}])";
  EXPECT_EQ(dump(read(asking(R"(, "system": "Be brief.")")).chat.messages),
            R"([{"role":"system","content":"Be brief."})" + user);
  EXPECT_EQ(
      dump(read(asking(R"(, "system": [{"type": "text", "text": "a"},
                              {"type": "text", "text": "b", "cache_control": {}}])"))
               .chat.messages),
      R"([{"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})" +
          user);
}

TEST(MessagesRequest, ALineThatDiffersInEveryConversationIsLeftOut) {
  const MessagesRequest request =
      read(asking(R"(, "system": [{"type": "text", "text": "x-anthropic-billing-header: v=1.abc"},
                             {"type": "text", "text": "a"}])"));
  EXPECT_EQ(dump(request.chat.messages[0]["content"]), R"([{"type":"text","text":"a"}])");
}

TEST(MessagesRequest, AnAssistantThinksSpeaksAndCalls) {
  EXPECT_EQ(messages_of(R"([{"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"b": 2}}]}])"),
            R"([{"role":"assistant","content":[{"type":"text","text":"a"}],)"
            R"("reasoning_content":"Hm","tool_calls":[{"id":"1","type":"function",)"
            R"("function":{"name":"f","arguments":{"b":2}}}]}])");
}

TEST(MessagesRequest, ResultsComeBeforeWhatTheUserSays) {
  EXPECT_EQ(messages_of(R"([{"role": "user", "content": [
                {"type": "text", "text": "and now?"},
                {"type": "tool_result", "tool_use_id": "1", "content": "x"},
                {"type": "tool_result", "tool_use_id": "2", "is_error": true,
                 "content": [{"type": "text", "text": "y"}]},
                {"type": "tool_result", "tool_use_id": "3"}]}])"),
            R"([{"role":"tool","tool_call_id":"1","content":"x"},)"
            R"({"role":"tool","tool_call_id":"2","content":[{"type":"text","text":"y"}]},)"
            R"({"role":"tool","tool_call_id":"3","content":""},)"
            R"({"role":"user","content":[{"type":"text","text":"and now?"}]}])");
}

TEST(MessagesRequest, ImagesAreInWhatUsersSayAndToolsReturn) {
  const std::string image = R"({"type": "image", "source": {"type": "base64",
                                "media_type": "image/png", "data": "aGk="}})";
  const auto shown = [](const std::string& path) {
    return R"({"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="},"path":")" +
           path + R"("})";
  };
  EXPECT_EQ(messages_of(R"([{"role": "user", "content": [)" + image + R"(,
                {"type": "text", "text": "what?"},
                {"type": "tool_result", "tool_use_id": "1", "content": [)" +
                        image + "]}]}]"),
            R"([{"role":"tool","tool_call_id":"1","content":[)" +
                shown("messages[0].content[2].content[0]") + R"(]},{"role":"user","content":[)" +
                shown("messages[0].content[0]") + R"(,{"type":"text","text":"what?"}]}])");
  for (const char* role : {"assistant", "system"}) {
    EXPECT_EQ(refusal(R"({"max_tokens": 9, "messages": [{"role": ")" + std::string(role) +
                      R"(", "content": [)" + image + "]}]}")
                  .param,
              "messages[0].content[0]");
  }
}

TEST(MessagesRequest, ToolsAreFunctions) {
  const MessagesRequest request = read(asking(
      R"(, "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"},
                      "cache_control": {"type": "ephemeral"}}, {"type": "custom", "name": "g"}],
         "tool_choice": {"type": "tool", "name": "g", "disable_parallel_tool_use": true})"));
  EXPECT_EQ(dump(request.chat.tools),
            R"([{"type":"function","function":{"name":"f","description":"d",)"
            R"("parameters":{"type":"object"}}},{"type":"function","function":{"name":"g"}}])");
  EXPECT_EQ(request.chat.tool_choice.kind, ToolChoice::Kind::kNamed);
  EXPECT_EQ(request.chat.tool_choice.name, "g");
  EXPECT_FALSE(request.chat.tool_choice.allows_several);
  EXPECT_TRUE(request.wants_cache);
}

TEST(MessagesRequest, OptionsHaveAnthropicsNames) {
  const MessagesRequest request = read(asking(
      R"(, "stop_sequences": ["END"], "stream": true, "temperature": 0.5, "top_k": 4,
         "thinking": {"type": "enabled", "budget_tokens": 64}, "metadata": {"user_id": "u"}, "betas": ["x"],
         "output_config": {"effort": "low", "format": {"type": "json_schema",
                           "schema": {"type": "object"}}})"));
  const GenerationOptions& options = request.chat.options;
  EXPECT_EQ(options.max_tokens, 9);
  EXPECT_TRUE(options.may_shorten);
  EXPECT_TRUE(options.streams);
  EXPECT_EQ(options.stops, std::vector<std::string>{"END"});
  EXPECT_EQ(options.sampling.top_k, 4);
  EXPECT_EQ(request.chat.reasoning.is_on, true);
  EXPECT_EQ(request.chat.reasoning.n_tokens_max, 64);
  EXPECT_EQ(request.chat.reasoning.effort, "low");
  EXPECT_EQ(dump(request.chat.response_schema.value_or(Json())), R"({"type":"object"})");
  EXPECT_FALSE(request.wants_cache);
}

TEST(MessagesRequest, RefusalsNameTheField) {
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": "hi"}]})").param, "max_tokens");
  EXPECT_EQ(refusal(R"({"max_tokens": 9, "messages": []})").param, "messages");
  EXPECT_EQ(refusal(R"({"max_tokens": 9, "messages": [{"role": "user", "content": []}]})").param,
            "messages");
  const auto param_of = [](const std::string& block) {
    return refusal(R"({"max_tokens": 9, "messages": [{"role": "user", "content": [)" + block +
                   "]}]}")
        .param;
  };
  EXPECT_EQ(param_of(R"({"type": "image", "source": {}})"), "messages[0].content[0]");
  EXPECT_EQ(param_of("7"), "messages[0].content[0]");
  EXPECT_EQ(param_of(R"({"type": "tool_result"})"), "messages[0].content[0].tool_use_id");
  EXPECT_EQ(refusal(asking(R"(, "tools": [{"type": "web_search_20250305", "name": "w"}])")).param,
            "tools[0].type");
  EXPECT_EQ(refusal(asking(R"(, "tool_choice": {"type": "any"})")).param, "tool_choice");
  EXPECT_EQ(refusal(asking(R"(, "system": [{"type": "image"}])")).param, "system[0]");
  EXPECT_EQ(refusal(asking(R"(, "thinking": {"type": "much"})")).param, "thinking");
  EXPECT_EQ(refusal(asking(R"(, "thinking": {"type": "enabled", "budget_tokens": "x"})")).param,
            "thinking.budget_tokens");
  EXPECT_EQ(refusal(asking(R"(, "output_config": {"effort": "much"})")).param,
            "output_config.effort");
  EXPECT_EQ(refusal(R"({"max_tokens": 9, "messages": [{"role": "tool", "content": "x"}]})").param,
            "messages[0].role");
}

TEST(MessagesError, HasAnthropicsShapeAndStatus) {
  EXPECT_EQ(messages_refusal({.status = 429, .message = "slow down"}).status, 429);
  const HttpReply overload =
      messages_refusal({.status = 429, .message = "the queue is full", .is_overload = true});
  EXPECT_EQ(overload.status, 529);
  EXPECT_EQ(
      overload.body,
      R"({"type":"error","error":{"type":"overloaded_error","message":"the queue is full"}})");
  EXPECT_EQ(messages_refusal({.status = 503, .message = "ending"}).status, 529);
  const ApiError too_long{.message = "as OpenAI says it", .lengths = ApiError::Lengths{5000, 4096}};
  EXPECT_EQ(messages_error(too_long),
            R"({"type":"error","error":{"type":"invalid_request_error",)"
            R"("message":"prompt is too long: 5000 tokens > 4096 maximum"}})");
}

TEST(MessagesRequest, ALastMessageOfTheAssistantIsContinued) {
  const auto continues = [](const std::string& last) {
    return read(R"({"max_tokens": 9, "messages": [{"role": "user", "content": "hi"},)" + last +
                "]}")
        .chat.continues_last;
  };
  EXPECT_TRUE(continues(R"({"role": "assistant", "content": "ho"})"));
  EXPECT_TRUE(continues(R"({"role": "assistant", "content": [{"type": "text", "text": "ho"}]})"));
  EXPECT_FALSE(continues(R"({"role": "assistant", "content": ""})"));
  EXPECT_FALSE(continues(R"({"role": "assistant", "content": [
      {"type": "text", "text": "ho"}, {"type": "tool_use", "id": "a", "name": "f", "input": {}}]})"));
  EXPECT_FALSE(
      continues(R"({"role": "assistant", "content": [{"type": "thinking", "thinking": "a"}]})"));
  EXPECT_FALSE(continues(R"({"role": "user", "content": "ho"})"));
  EXPECT_EQ(refusal(R"({"max_tokens": 9, "messages": [{"role": "user", "content": "hi"},
                         {"role": "assistant", "content": "{"}], "output_config": {"format":
                         {"type": "json_schema", "schema": {}}}})")
                .param,
            "messages");
}

TEST(MessagesRequest, MaxTokensMayBeWhatFits) {
  const auto max_tokens = [](const std::string& text) {
    return read(R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": )" + text + "}")
        .chat.options.max_tokens;
  };
  EXPECT_EQ(max_tokens("7"), 7);
  EXPECT_EQ(max_tokens("-1"), std::nullopt);
  EXPECT_EQ(refusal(R"({"messages": [{"role": "user", "content": "hi"}]})").message,
            "'max_tokens' is required");
  EXPECT_EQ(
      refusal(R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 0})").message,
      "'max_tokens' must be at least 1, or -1 for no limit");
}

}  // namespace
}  // namespace slipstream
