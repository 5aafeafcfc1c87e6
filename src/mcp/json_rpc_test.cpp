#include "mcp/json_rpc.h"

#include <gmock/gmock.h>

#include "mcp/mcp_limits.h"

namespace slipstream {
namespace {

using Kind = RpcMessage::Kind;

RpcMessage message_of(std::string_view text) {
  RpcResult<Json> json = parse_rpc(text);
  EXPECT_TRUE(json) << text;
  return read_rpc(*json);
}

TEST(JsonRpc, TellsWhatAMessageIs) {
  const RpcMessage request =
      message_of(R"({"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1}})");
  EXPECT_EQ(request.kind, Kind::kRequest);
  EXPECT_EQ(request.id, 7);
  EXPECT_EQ(request.method, "ping");
  EXPECT_EQ(request.params["a"], 1);
  EXPECT_FALSE(request.problem);
  EXPECT_EQ(message_of(R"({"jsonrpc":"2.0","method":"notifications/x"})").kind,
            Kind::kNotification);
  EXPECT_EQ(message_of(R"({"jsonrpc":"2.0","id":"a","result":{}})").kind, Kind::kResponse);
}

TEST(JsonRpc, RefusesWhatIsNoMessage) {
  for (const char* text :
       {"1", "\"ping\"", "null", "{}", R"({"id":1,"method":"ping"})",
        R"({"jsonrpc":"1.0","id":1,"method":"ping"})", R"({"jsonrpc":2,"id":1,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":null,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":true,"method":"ping"})",
        R"({"jsonrpc":"2.0","id":{},"method":"ping"})",
        R"({"jsonrpc":"2.0","id":[1],"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"method":7})",
        R"({"jsonrpc":"2.0","id":1,"method":null})", R"({"jsonrpc":"2.0","id":1})"}) {
    const RpcMessage message = message_of(text);
    ASSERT_TRUE(message.problem) << text;
    EXPECT_EQ(message.problem->code, kRpcInvalidRequest) << text;
  }
  const RpcMessage params = message_of(R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})");
  ASSERT_TRUE(params.problem);
  EXPECT_EQ(params.problem->code, kRpcInvalidParams);
  EXPECT_EQ(params.id, 1);
}

TEST(JsonRpc, TextsOfTheEnvelopeAreBounded) {
  const auto with = [](std::size_t id_bytes, std::size_t method_bytes) {
    return message_of(rpc_text({{"jsonrpc", "2.0"},
                                {"id", std::string(id_bytes, 'i')},
                                {"method", std::string(method_bytes, 'm')}}));
  };
  EXPECT_FALSE(with(kMcpLimits.id_bytes_max, kMcpLimits.method_bytes_max).problem);
  EXPECT_TRUE(with(kMcpLimits.id_bytes_max + 1, 4).problem);
  EXPECT_TRUE(with(4, kMcpLimits.method_bytes_max + 1).problem);
}

TEST(JsonRpc, WhatIsNotJsonIsAParseError) {
  for (const char* text :
       {"", "{", "{\"a\":}", "nul", "{\"jsonrpc\":\"2.0\"} x", "\xFF", "\"\xFF\""}) {
    const RpcResult<Json> json = parse_rpc(text);
    ASSERT_FALSE(json) << text;
    EXPECT_EQ(json.error().code, kRpcParseError) << text;
  }
}

std::string repeated(std::string_view text, std::size_t n) {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) all += text;
  return all;
}

TEST(JsonRpc, MessagesAreBoundedInDepthNumberAndSize) {
  const auto code_of = [](const std::string& text) {
    const RpcResult<Json> json = parse_rpc(text);
    return json ? 0 : json.error().code;
  };
  const std::size_t depth = kMcpLimits.nesting_max;
  EXPECT_EQ(code_of(repeated("[", depth) + repeated("]", depth)), 0);
  EXPECT_EQ(code_of(repeated("[", depth + 1) + repeated("]", depth + 1)), kRpcInvalidRequest);
  EXPECT_EQ(code_of(repeated("{\"a\":", 50'000)), kRpcInvalidRequest);
  EXPECT_EQ(code_of("[" + repeated("1,", kMcpLimits.values_max) + "1]"), kRpcInvalidRequest);
  std::string members = "{";
  for (std::size_t i = 0; i <= kMcpLimits.members_max; ++i)
    members += "\"" + std::to_string(i) + "\":1,";
  EXPECT_EQ(code_of(members + "\"z\":1}"), kRpcInvalidRequest);
  EXPECT_EQ(code_of("\"" + std::string(kMcpLimits.message_bytes_max, 'a') + "\""),
            kRpcInvalidRequest);
  EXPECT_EQ(code_of("\"" + std::string(kMcpLimits.message_bytes_max - 2, 'a') + "\""), 0);
}

TEST(JsonRpc, RepliesAreOnOneLine) {
  EXPECT_EQ(rpc_text(rpc_reply("a", Json{{"text", "x\ny"}})),
            R"({"jsonrpc":"2.0","id":"a","result":{"text":"x\ny"}})");
  EXPECT_EQ(rpc_text(rpc_reply(Json(), RpcError{.code = kRpcParseError, .message = "\xFF"})),
            "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"\xEF\xBF\xBD\"}}");
}

}  // namespace
}  // namespace slipstream
