// McpRoutes: POST /mcp, the Model Context Protocol over HTTP ("Streamable HTTP", plain JSON answers).
//
// Calls wait for the index and its files on threads of their own, so that chats never wait for them.
//
// Threads: thread-safe. Errors: as refusals in JSON-RPC's form (mcp_refusal).
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>

#include "mcp/mcp_server.h"
#include "server/api/api_error.h"
#include "server/http/http_exchange.h"
#include "server/routes/route_table.h"

namespace slipstream {

class McpRoutes {
 public:
  // REQUIRES: the server outlives this.
  explicit McpRoutes(McpServer& server) : server_(server) {}

  RouteAnswer answer(HttpExchange& exchange, const Client& client);
  // Ends waits for the index.
  void stop() { server_.stop(); }

 private:
  static constexpr int kThreads = 4;  // more than may wait for the index at a time

  McpServer& server_;
  std::atomic<int> n_waiting_ = 0;
  boost::asio::thread_pool threads_{kThreads};  // must be the last member: its work uses the others
};

[[nodiscard]] HttpReply mcp_refusal(const ApiError& error);

}  // namespace slipstream
