#include "mcp/mcp_server.h"

#include <gmock/gmock.h>

#include "mcp/mcp_limits.h"
#include "mcp/mcp_test_support.h"

namespace slipstream {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class McpServerTest : public McpTest {
 protected:
  void SetUp() override {
    write("a.txt", "The heron stands in the river.\n");
    serve_root();
  }
  std::vector<std::string> tool_names(const Json& listed) {
    std::vector<std::string> names;
    for (const Json& tool : listed["result"]["tools"]) names.push_back(tool["name"]);
    return names;
  }
  static int code_of(const Json& reply) { return reply.at("error").at("code").get<int>(); }
};

TEST_F(McpServerTest, OfTheLatestRevisionEachRequestStandsForItself) {
  const Json found = ask(modern("server/discover"))["result"];
  EXPECT_EQ(found["resultType"], "complete");
  EXPECT_EQ(found["supportedVersions"], Json::array({"2026-07-28"}));
  EXPECT_TRUE(found["capabilities"].contains("tools"));
  EXPECT_EQ(found["cacheScope"], "public");
  EXPECT_GT(found["ttlMs"], 0);
  EXPECT_EQ(found["_meta"]["io.modelcontextprotocol/serverInfo"]["version"], "1.2.3");
  const Json listed = ask(modern("tools/list"));
  EXPECT_EQ(listed["result"]["resultType"], "complete");
  EXPECT_EQ(listed["result"]["cacheScope"], "public");
  const Json called = call("search", {{"query", "heron"}});
  EXPECT_EQ(called["resultType"], "complete");
  EXPECT_FALSE(called.contains("ttlMs"));
  EXPECT_EQ(ask(modern("resources/list"))["result"]["cacheScope"], "private");
}

TEST_F(McpServerTest, OfTheLatestRevisionThereIsNoInitializeAndNoPing) {
  EXPECT_EQ(code_of(ask(modern("ping"))), kRpcMethodNotFound);
  EXPECT_EQ(code_of(ask(modern("initialize"))), kRpcMethodNotFound);
  EXPECT_EQ(code_of(ask(modern("prompts/list"))), kRpcMethodNotFound);
  EXPECT_EQ(code_of(ask(modern("subscriptions/listen"))), kRpcMethodNotFound);
}

TEST_F(McpServerTest, EarlierRevisionsBeginWithInitialize) {
  EXPECT_EQ(code_of(ask(message("tools/list"))), kRpcInvalidParams) << "nothing is agreed on yet";
  EXPECT_EQ(ask(message("ping"))["result"], Json::object());
  for (const auto* revision : {"2025-11-25", "2025-06-18", "2025-03-26"}) {
    const Json agreed = initialize(revision)["result"];
    EXPECT_EQ(agreed["protocolVersion"], revision);
    EXPECT_EQ(agreed["serverInfo"]["name"], "slipstream");
    EXPECT_EQ(send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").text, "");
    const Json listed = ask(message("tools/list"));
    EXPECT_THAT(tool_names(listed), Contains("search"));
    EXPECT_FALSE(listed["result"].contains("resultType")) << revision;
    const Json called =
        ask(message("tools/call", {{"name", "search"}, {"arguments", {{"query", "heron"}}}}));
    const bool has_structure = std::string_view(revision) != "2025-03-26";
    EXPECT_EQ(called["result"].contains("structuredContent"), has_structure) << revision;
    EXPECT_EQ(listed["result"]["tools"][0].contains("title"), has_structure) << revision;
  }
  EXPECT_EQ(initialize("2024-11-05")["result"]["protocolVersion"], "2025-11-25");
  EXPECT_EQ(code_of(ask(message("server/discover"))), kRpcMethodNotFound);
  EXPECT_EQ(code_of(ask(message("completion/complete"))), kRpcMethodNotFound);
}

TEST_F(McpServerTest, BothErasShareAConnection) {
  initialize("2025-06-18");
  EXPECT_EQ(ask(modern("tools/list"))["result"]["resultType"], "complete");
  EXPECT_FALSE(ask(message("tools/list"))["result"].contains("resultType"));
}

TEST_F(McpServerTest, BatchesAreOfOneRevisionOnly) {
  const Json batch = Json::array({message("ping"),
                                  {{"jsonrpc", "2.0"}, {"method", "notifications/x"}},
                                  message("nothing"),
                                  Json(7)});
  EXPECT_EQ(code_of(ask(batch)), kRpcInvalidRequest);
  initialize("2025-11-25");
  EXPECT_EQ(code_of(ask(batch)), kRpcInvalidRequest);
  initialize("2025-03-26");
  const Json replies = ask(batch);
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_EQ(replies[0]["result"], Json::object());
  EXPECT_EQ(code_of(replies[1]), kRpcMethodNotFound);
  EXPECT_EQ(code_of(replies[2]), kRpcInvalidRequest);
  EXPECT_EQ(code_of(ask(Json::array())), kRpcInvalidRequest);
  EXPECT_EQ(
      code_of(ask(Json::array({message("initialize", {{"protocolVersion", "2025-03-26"}})}))[0]),
      kRpcInvalidRequest);
  Json many = Json::array();
  for (std::size_t i = 0; i <= kMcpLimits.batch_max; ++i) many.push_back(message("ping"));
  EXPECT_EQ(code_of(ask(many)), kRpcInvalidRequest);
  EXPECT_EQ(send(R"([{"jsonrpc":"2.0","method":"notifications/x"}])").text, "");
}

TEST_F(McpServerTest, OverHttpErrorsHaveAStatus) {
  const auto status = [&](const Json& body, const McpHeaders& headers) {
    return send(rpc_text(body), &headers).http_status;
  };
  const auto headers = [](const std::string& method) {
    return McpHeaders{.revision = std::string(kMcpModern), .method = method, .name = {}};
  };
  EXPECT_EQ(status(modern("tools/list"), headers("tools/list")), 200);
  EXPECT_EQ(status(modern("tools/list"), headers("tools/call")), 400);
  EXPECT_EQ(status(modern("nothing"), headers("nothing")), 404);
  EXPECT_EQ(status(message("tools/list"), {}), 200);
  EXPECT_EQ(status(message("nothing"), {}), 200) << "earlier revisions have no such rule";
  EXPECT_EQ(status(message("initialize", {{"protocolVersion", "2025-11-25"}}), {}), 200);
  EXPECT_EQ(status({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}, {}), 202);
  EXPECT_EQ(status({{"jsonrpc", "2.0"}, {"id", 1}, {"result", Json::object()}}, {}), 202);
  EXPECT_EQ(status({{"jsonrpc", "2.0"}, {"method", "notifications/x"}},
                   {.revision = "1900-01-01", .method = {}, .name = {}}),
            400);
  const McpHeaders none;
  EXPECT_EQ(send("{", &none).http_status, 400);
  EXPECT_EQ(send("7", &none).http_status, 400);
  // A tool that does not exist is an answer, not a fault of the transport.
  const McpHeaders unknown{
      .revision = std::string(kMcpModern), .method = "tools/call", .name = "nothing"};
  const McpReply reply = send(rpc_text(modern("tools/call", {{"name", "nothing"}})), &unknown);
  EXPECT_EQ(reply.http_status, 200);
  EXPECT_EQ(code_of(Json::parse(reply.text)), kRpcInvalidParams);
}

TEST_F(McpServerTest, WhateverIsSentGetsAnAnswer) {
  initialize("2025-11-25");
  for (const char* text :
       {"", "{", "[", "7", "null", "{}", "[[[[]]]]", R"({"jsonrpc":"2.0","id":{}})",
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})",
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":7})",
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}})",
        R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":[]}})",
        R"({"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":{}}})",
        R"({"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"x"}})"}) {
    const Json reply = Json::parse(send(text).text);
    EXPECT_TRUE(reply.contains("error")) << text << reply;
    EXPECT_EQ(reply["jsonrpc"], "2.0");
  }
  const std::string deep(200'000, '[');
  EXPECT_EQ(code_of(Json::parse(send(deep).text)), kRpcInvalidRequest);
  EXPECT_EQ(code_of(Json::parse(send(std::string(1'000'000, ' ')).text)), kRpcInvalidRequest);
  const std::string long_name(100'000, 'x');
  EXPECT_LT(rpc_text(ask(message("tools/call", {{"name", long_name}}))).size(), 400U);
}

TEST_F(McpServerTest, SchemasAreStrict) {
  const Json listed = ask(modern("tools/list"));
  EXPECT_GE(listed["result"]["tools"].size(), 7U);
  for (const Json& tool : listed["result"]["tools"]) {
    const Json& schema = tool["inputSchema"];
    EXPECT_EQ(schema["type"], "object") << tool;
    EXPECT_EQ(schema["additionalProperties"], false) << tool;
    ASSERT_TRUE(schema["properties"].is_object()) << tool;
    for (const auto& [name, property] : schema["properties"].items()) {
      EXPECT_TRUE(property.contains("maxLength") || property.contains("maximum")) << tool << name;
      EXPECT_FALSE(property["description"].get<std::string>().empty()) << tool << name;
    }
    EXPECT_EQ(tool["annotations"]["readOnlyHint"], true) << tool;
  }
  EXPECT_THAT(tool_names(listed), Not(Contains("add_project")))
      << "clients may not add folders here";
}

TEST_F(McpServerTest, WrongArgumentsAreSomethingThatAModelCanMend) {
  EXPECT_EQ(failure("search", Json::object()), "'query' is missing");
  EXPECT_EQ(failure("search", {{"query", ""}}), "'query' must have 1 to 4000 characters");
  EXPECT_EQ(failure("search", {{"query", std::string(4001, 'a')}}),
            "'query' must have 1 to 4000 characters");
  EXPECT_EQ(failure("search", {{"query", 7}}), "'query' must be a text");
  EXPECT_THAT(failure("search", {{"query", "heron"}, {"n", 1}}),
              HasSubstr("there is no argument 'n': there are query"));
  for (const Json& wrong :
       {Json(0), Json(51), Json(-1), Json("8"), Json(1.5), Json(18446744073709551615ULL)}) {
    EXPECT_EQ(failure("search", {{"query", "heron"}, {"max_results", wrong}}),
              "'max_results' must be an integer from 1 to 50");
  }
  EXPECT_EQ(failure("list_projects", {{"a", 1}}), "there are no arguments");
  EXPECT_EQ(failure("search", Json::array()), "the arguments must be an object");
  EXPECT_EQ(failure("search", {{"query", "?!"}}), "the query has no words that can be looked for");
}

}  // namespace
}  // namespace slipstream
