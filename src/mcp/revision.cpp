#include "mcp/revision.h"

#include <algorithm>
#include <cstdint>

#include "base/format.h"

namespace slipstream {
namespace {

constexpr std::string_view kRevisionKey = "io.modelcontextprotocol/protocolVersion";
constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
// Of clients that send no header: it came with the revision after this one.
constexpr std::string_view kWithoutHeader = "2025-03-26";

std::unexpected<McpRefusal> refuse(int code, std::string message, Json data = {}) {
  return std::unexpected(
      McpRefusal{.http_status = 400,
                 .error = {.code = code, .message = std::move(message), .data = std::move(data)}});
}

std::unexpected<McpRefusal> unsupported(std::string_view asked) {
  return refuse(
      kMcpUnsupportedRevision,
      format_text("this server has no revision {}: in _meta it takes {}, and with initialize "
                  "{} to {}",
                  rpc_quoted(asked), kMcpModern, kMcpWithInitialize.back(),
                  kMcpWithInitialize.front()),
      {{"supported", Json::array({kMcpModern})}, {"requested", rpc_quoted(asked)}});
}

std::optional<std::string_view> known(std::string_view revision) {
  const auto found = std::ranges::find(kMcpWithInitialize, revision);
  if (found == kMcpWithInitialize.end()) return std::nullopt;
  return *found;
}

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U | static_cast<std::uint32_t>(digit)) & 0xFFFFU;
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>(bits >> static_cast<unsigned>(n_bits) & 0xFFU);
  }
  return bytes;
}

// The value of the body that Mcp-Name repeats; null: this method has none.
const Json* named_in_body(const RpcMessage& message) {
  if (message.method == "tools/call" || message.method == "prompts/get") {
    return rpc_member(message.params, "name");
  }
  return message.method == "resources/read" ? rpc_member(message.params, "uri") : nullptr;
}

// Intermediaries decide by headers: a request whose body says something else is refused.
std::expected<void, McpRefusal> check_headers(const RpcMessage& message,
                                              const McpHeaders& headers) {
  if (!headers.revision)
    return refuse(kMcpHeaderMismatch, "the header MCP-Protocol-Version is missing");
  if (message.kind != RpcMessage::Kind::kRequest) return {};
  if (!headers.method) return refuse(kMcpHeaderMismatch, "the header Mcp-Method is missing");
  if (*headers.method != message.method) {
    return refuse(kMcpHeaderMismatch,
                  format_text("the header Mcp-Method is {}, but the body asks for {}",
                              rpc_quoted(*headers.method), message.method));
  }
  const Json* named = named_in_body(message);
  if (named == nullptr || !named->is_string()) return {};
  if (!headers.name) return refuse(kMcpHeaderMismatch, "the header Mcp-Name is missing");
  const std::optional<std::string> name = header_value(*headers.name);
  if (!name) return refuse(kMcpHeaderMismatch, "the header Mcp-Name is not valid base64");
  if (*name != named->get_ref<const std::string&>()) {
    return refuse(kMcpHeaderMismatch,
                  format_text("the header Mcp-Name is {}, but the body names {}", rpc_quoted(*name),
                              rpc_quoted(named->get_ref<const std::string&>())));
  }
  return {};
}

std::expected<std::string_view, McpRefusal> modern_revision(const RpcMessage& message,
                                                            const Json& meta,
                                                            const McpHeaders* headers) {
  const Json* revision = rpc_member(meta, kRevisionKey);
  if (revision == nullptr || !revision->is_string()) {
    return refuse(kRpcInvalidParams,
                  format_text("params._meta must have '{}', a text", kRevisionKey));
  }
  const auto& asked = revision->get_ref<const std::string&>();
  if (headers != nullptr && headers->revision && *headers->revision != asked) {
    return refuse(kMcpHeaderMismatch,
                  format_text("the header MCP-Protocol-Version is {}, but the body says {}",
                              rpc_quoted(*headers->revision), rpc_quoted(asked)));
  }
  if (asked != kMcpModern) return unsupported(asked);
  const Json* capabilities = rpc_member(meta, kCapabilitiesKey);
  if (message.kind == RpcMessage::Kind::kRequest &&
      (capabilities == nullptr || !capabilities->is_object())) {
    return refuse(kRpcInvalidParams,
                  format_text("params._meta must have '{}', an object", kCapabilitiesKey));
  }
  if (headers != nullptr) {
    if (auto checked = check_headers(message, *headers); !checked) {
      return std::unexpected(std::move(checked.error()));
    }
  }
  return kMcpModern;
}

}  // namespace

std::expected<std::string_view, McpRefusal> revision_of(const RpcMessage& message,
                                                        const McpHeaders* headers,
                                                        const McpSession* session) {
  const Json* meta = rpc_member(message.params, "_meta");
  if (meta != nullptr && meta->is_object() && meta->contains(kRevisionKey)) {
    return modern_revision(message, *meta, headers);
  }
  if (headers != nullptr) {
    if (!headers->revision) return kWithoutHeader;
    if (*headers->revision == kMcpModern && message.kind == RpcMessage::Kind::kRequest) {
      return modern_revision(message, {}, headers);  // which says what is missing
    }
    if (*headers->revision == kMcpModern) return kMcpModern;
    if (const auto revision = known(*headers->revision)) return *revision;
    return unsupported(*headers->revision);
  }
  if (session != nullptr && !session->revision.empty()) return session->revision;
  if (message.kind != RpcMessage::Kind::kRequest || message.method == "ping") {
    return kMcpWithInitialize.front();
  }
  return refuse(kRpcInvalidParams,
                format_text("the request says no revision: put '{}' and '{}' into params._meta, or "
                            "begin with initialize",
                            kRevisionKey, kCapabilitiesKey));
}

std::string_view agreed_revision(const Json& params) {
  const Json* asked = rpc_member(params, "protocolVersion");
  if (asked == nullptr || !asked->is_string()) return kMcpWithInitialize.front();
  return known(asked->get_ref<const std::string&>()).value_or(kMcpWithInitialize.front());
}

std::optional<McpRefusal> refuse_initialize(const RpcMessage& message, const McpHeaders* headers) {
  const Json* meta = rpc_member(message.params, "_meta");
  const bool is_modern = (meta != nullptr && meta->is_object() && meta->contains(kRevisionKey)) ||
                         (headers != nullptr && headers->revision == kMcpModern);
  if (is_modern) {
    return McpRefusal{
        .http_status = 404,
        .error = {.code = kRpcMethodNotFound,
                  .message = format_text("{} has no initialize: ask server/discover", kMcpModern)}};
  }
  if (const Json* revision = rpc_member(message.params, "protocolVersion");
      revision == nullptr || !revision->is_string()) {
    return McpRefusal{
        .http_status = 400,
        .error = {.code = kRpcInvalidParams, .message = "'protocolVersion' must be a text"}};
  }
  return std::nullopt;
}

std::optional<std::string> header_value(std::string_view header) {
  constexpr std::string_view kBegin = "=?base64?";
  constexpr std::string_view kEnd = "?=";
  if (header.size() >= kBegin.size() + kEnd.size() && header.starts_with(kBegin) &&
      header.ends_with(kEnd)) {
    header.remove_prefix(kBegin.size());
    header.remove_suffix(kEnd.size());
    return from_base64(header);
  }
  return std::string(header);
}

}  // namespace slipstream
