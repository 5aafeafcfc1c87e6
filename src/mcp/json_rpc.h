// JSON-RPC 2.0, as far as MCP uses it: messages of clients, within limits, and replies.
//
// Threads: pure functions.
// Errors:  RpcError, as the client is told: {"code": ..., "message": ..., "data": ...}.
#pragma once

#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace slipstream {

using Json = nlohmann::ordered_json;

struct RpcError {
  int code;
  std::string message;
  Json data = {};  // null: none
};
inline constexpr int kRpcParseError = -32700;
inline constexpr int kRpcInvalidRequest = -32600;
inline constexpr int kRpcMethodNotFound = -32601;
inline constexpr int kRpcInvalidParams = -32602;
inline constexpr int kRpcInternalError = -32603;

template <typename T>
using RpcResult = std::expected<T, RpcError>;

struct RpcMessage {
  enum class Kind : std::uint8_t { kRequest, kNotification, kResponse };

  Kind kind = Kind::kRequest;
  Json id = {};  // a text or an integer; null: it has none, or none that can be used
  std::string method = {};
  Json params = Json::object();
  std::optional<RpcError> problem = {};  // why it cannot be answered otherwise
};

// A message, or a batch of them, whose values are within McpLimits.
[[nodiscard]] RpcResult<Json> parse_rpc(std::string_view text);
[[nodiscard]] RpcMessage read_rpc(Json& json);

[[nodiscard]] Json rpc_reply(const Json& id, Json result);
[[nodiscard]] Json rpc_reply(const Json& id, const RpcError& error);
// On one line. Bytes that are not UTF-8 are replaced.
[[nodiscard]] std::string rpc_text(const Json& json);

// Null if there is no such member, or if `object` is not an object.
[[nodiscard]] const Json* rpc_member(const Json& object, std::string_view name);
// Shortens what a client sent.
[[nodiscard]] std::string rpc_quoted(std::string_view text);

}  // namespace slipstream
