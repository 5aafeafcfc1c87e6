#include "server/routes/mcp.h"

#include <optional>
#include <string>
#include <string_view>

#include "mcp/mcp_limits.h"
#include "server/routes/routes.h"
#include "server/routes/waiting.h"
#include "server/run_on.h"

namespace slipstream {
namespace {

constexpr int kMcpWaitingMax = 64;

std::optional<std::string> header_of(const HttpRequest& request, std::string_view name) {
  const auto found = request.find(name);
  if (found == request.end()) return std::nullopt;
  return std::string(found->value());
}

RouteAnswer with_mcp(const RouteParts& parts, HttpExchange& exchange, const Client& client) {
  if (parts.mcp == nullptr) {
    co_return std::unexpected(ApiError{
        .status = 404, .message = "There is no /mcp: the server was started without --mcp"});
  }
  co_return co_await parts.mcp->answer(exchange, client);
}

}  // namespace

HttpReply mcp_refusal(const ApiError& error) {
  // JSON-RPC reserves its own codes; there are none for what HTTP refuses.
  return {.status = error.status,
          .body = rpc_text(
              rpc_reply(Json(), RpcError{.code = error.status, .message = error.message}))};
}

RouteAnswer McpRoutes::answer(HttpExchange& exchange, const Client& client) {
  if (const auto problem = co_await exchange.read_body(kMcpLimits.message_bytes_max)) {
    co_return std::unexpected(ApiError{.status = problem->status, .message = problem->message});
  }
  const Waiting waiting(n_waiting_);
  if (waiting.are_more_than(kMcpWaitingMax)) {
    co_return std::unexpected(
        ApiError{.status = 429, .message = "Too many ask the index now: try again soon"});
  }
  McpReply reply = co_await run_on(threads_, [&] {
    const HttpRequest& request = exchange.request();
    const McpHeaders headers{.revision = header_of(request, "MCP-Protocol-Version"),
                             .method = header_of(request, "Mcp-Method"),
                             .name = header_of(request, "Mcp-Name")};
    return server_.answer(server_.read(request.body(), &headers, nullptr), client.rights);
  });
  (void)co_await exchange.reply({.status = reply.http_status, .body = std::move(reply.text)});
  co_return ApiResult<void>();
}

void add_mcp_routes(RouteTable& table, const RouteParts& parts) {
  table.add({.method = boost::beast::http::verb::post,
             .path = "/mcp",
             .answer = [&parts](HttpExchange& exchange,
                                const Client& client) { return with_mcp(parts, exchange, client); },
             .refusal = mcp_refusal});
}

}  // namespace slipstream
