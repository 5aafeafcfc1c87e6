// Revisions of MCP: which one a request is of, and whether it has what that one demands.
//
// Since 2026-07-28 every request says its revision in params._meta, and over HTTP in headers too,
// which must agree. Before, a client and a server agreed on one in `initialize`: over stdio for as
// long as the process runs, over HTTP in a header of each request.
//
// Threads: pure functions. Errors: RpcError, and the HTTP status that goes with it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/json_rpc.h"

namespace slipstream {

inline constexpr std::string_view kMcpModern = "2026-07-28";
// Those with `initialize`, the latest first.
inline constexpr std::array<std::string_view, 3> kMcpWithInitialize = {"2025-11-25", "2025-06-18",
                                                                       "2025-03-26"};
inline constexpr int kMcpHeaderMismatch = -32020;
inline constexpr int kMcpUnsupportedRevision = -32022;

// Headers of Streamable HTTP.
struct McpHeaders {
  std::optional<std::string> revision = {};  // MCP-Protocol-Version
  std::optional<std::string> method = {};    // Mcp-Method
  std::optional<std::string> name = {};      // Mcp-Name
};

// What is agreed upon over stdio. Empty: no revision yet.
struct McpSession {
  std::string_view revision = {};
};

struct McpRefusal {
  int http_status;
  RpcError error;
};

// Of a request that is not `initialize`. headers: null over stdio. session: null over HTTP.
[[nodiscard]] std::expected<std::string_view, McpRefusal> revision_of(const RpcMessage& message,
                                                                      const McpHeaders* headers,
                                                                      const McpSession* session);
// What `initialize` agrees on: what the client asks for, or else the latest.
[[nodiscard]] std::string_view agreed_revision(const Json& params);
// Whether an `initialize` is one of the revisions that have it.
[[nodiscard]] std::optional<McpRefusal> refuse_initialize(const RpcMessage& message,
                                                          const McpHeaders* headers);

// A value as it stands in a header: plain, or as "=?base64?...?=". nullopt: it is not valid.
[[nodiscard]] std::optional<std::string> header_value(std::string_view header);

}  // namespace slipstream
