#include "mcp/revision.h"

#include <gmock/gmock.h>

namespace slipstream {
namespace {

using testing::Optional;

RpcMessage request(const std::string& method, Json params = Json::object()) {
  return {.id = 1, .method = method, .params = std::move(params)};
}

Json modern(Json params = Json::object(), std::string_view revision = kMcpModern) {
  params["_meta"] = {{"io.modelcontextprotocol/protocolVersion", revision},
                     {"io.modelcontextprotocol/clientCapabilities", Json::object()}};
  return params;
}

int code_of(const RpcMessage& message, const McpHeaders* headers,
            const McpSession* session = nullptr) {
  const auto revision = revision_of(message, headers, session);
  return revision ? 0 : revision.error().error.code;
}

TEST(Revision, OverStdioARequestOrTheSessionSaysIt) {
  McpSession session;
  EXPECT_EQ(revision_of(request("tools/list", modern()), nullptr, &session).value(), kMcpModern);
  EXPECT_EQ(code_of(request("tools/list"), nullptr, &session), kRpcInvalidParams);
  session.revision = agreed_revision({{"protocolVersion", "2025-06-18"}});
  EXPECT_EQ(revision_of(request("tools/list"), nullptr, &session).value(), "2025-06-18");
  EXPECT_EQ(revision_of(request("tools/list", modern()), nullptr, &session).value(), kMcpModern);
}

TEST(Revision, InitializeAgreesOnWhatIsAskedForOrTheLatest) {
  EXPECT_EQ(agreed_revision({{"protocolVersion", "2025-03-26"}}), "2025-03-26");
  EXPECT_EQ(agreed_revision({{"protocolVersion", "2024-11-05"}}), "2025-11-25");
  EXPECT_EQ(agreed_revision({{"protocolVersion", "2026-07-28"}}), "2025-11-25");
  EXPECT_EQ(agreed_revision({{"protocolVersion", 7}}), "2025-11-25");
  EXPECT_FALSE(
      refuse_initialize(request("initialize", {{"protocolVersion", "2025-06-18"}}), nullptr));
  EXPECT_EQ(refuse_initialize(request("initialize"), nullptr)->error.code, kRpcInvalidParams);
  EXPECT_EQ(refuse_initialize(request("initialize", modern()), nullptr)->error.code,
            kRpcMethodNotFound);
}

TEST(Revision, WhatIsMissingOrUnknownIsNamed) {
  Json meta = modern();
  meta["_meta"].erase("io.modelcontextprotocol/clientCapabilities");
  EXPECT_EQ(code_of(request("tools/list", meta), nullptr), kRpcInvalidParams);
  EXPECT_EQ(code_of(request("tools/list", modern(Json::object(), "1900-01-01")), nullptr),
            kMcpUnsupportedRevision);
  for (const Json& wrong : {Json(7), Json(), Json::array(), Json("2026-07-28")}) {
    Json params = modern();
    params["_meta"] = wrong;
    EXPECT_EQ(code_of(request("tools/list", params), nullptr), kRpcInvalidParams);
    params = modern();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = wrong;
    EXPECT_EQ(code_of(request("tools/list", params), nullptr), kRpcInvalidParams);
  }
  const auto refused =
      revision_of(request("tools/list", modern(Json::object(), "2025-11-25")), nullptr, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().http_status, 400);
  EXPECT_EQ(refused.error().error.data["supported"], Json::array({kMcpModern}));
  EXPECT_EQ(refused.error().error.data["requested"], "2025-11-25");
}

TEST(Revision, OverHttpHeadersMustAgreeWithTheBody) {
  const RpcMessage call = request("tools/call", modern({{"name", "search"}}));
  const McpHeaders right{.revision = "2026-07-28", .method = "tools/call", .name = "search"};
  EXPECT_EQ(revision_of(call, &right, nullptr).value(), kMcpModern);
  for (const McpHeaders& wrong :
       {McpHeaders{.revision = {}, .method = "tools/call", .name = "search"},
        McpHeaders{.revision = "2025-11-25", .method = "tools/call", .name = "search"},
        McpHeaders{.revision = "2026-07-28", .method = {}, .name = "search"},
        McpHeaders{.revision = "2026-07-28", .method = "tools/list", .name = "search"},
        McpHeaders{.revision = "2026-07-28", .method = "tools/call", .name = {}},
        McpHeaders{.revision = "2026-07-28", .method = "tools/call", .name = "read_lines"},
        McpHeaders{.revision = "2026-07-28", .method = "tools/call", .name = "=?base64?*?="}}) {
    EXPECT_EQ(code_of(call, &wrong), kMcpHeaderMismatch);
  }
  const RpcMessage read = request("resources/read", modern({{"uri", "file:///a"}}));
  const McpHeaders other_uri{
      .revision = "2026-07-28", .method = "resources/read", .name = "file:///b"};
  EXPECT_EQ(code_of(read, &other_uri), kMcpHeaderMismatch);
}

TEST(Revision, OverHttpClientsWithInitializeSendAHeader) {
  const McpHeaders none;
  EXPECT_EQ(revision_of(request("tools/list"), &none, nullptr).value(), "2025-03-26");
  const McpHeaders known{.revision = "2025-11-25", .method = {}, .name = {}};
  EXPECT_EQ(revision_of(request("tools/list"), &known, nullptr).value(), "2025-11-25");
  const McpHeaders unknown{.revision = "1900-01-01", .method = {}, .name = {}};
  EXPECT_EQ(code_of(request("tools/list"), &unknown), kMcpUnsupportedRevision);
  const McpHeaders modern_header{.revision = "2026-07-28", .method = "tools/list", .name = {}};
  EXPECT_EQ(code_of(request("tools/list"), &modern_header), kRpcInvalidParams)
      << "_meta is missing";
}

TEST(Revision, HeadersCanBeBase64) {
  EXPECT_THAT(header_value("search"), Optional(std::string("search")));
  EXPECT_THAT(header_value("=?base64?SGVsbG8sIOS4lueVjA==?="),
              Optional(std::string("Hello, 世界")));
  EXPECT_THAT(header_value("=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
              Optional(std::string("=?base64?literal?=")));
  EXPECT_EQ(header_value("=?base64?"
                         "?="),
            "");
  for (const char* wrong :
       {"=?base64?a?=", "=?base64?ab=c?=", "=?base64?a b=?=", "=?base64?=====?="}) {
    EXPECT_EQ(header_value(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace slipstream
