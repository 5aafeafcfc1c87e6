// The routes of the server. Each file in this folder adds its own routes to the table.
//
// Threads: call add_...() before the server listens. The routes themselves are thread-safe.
// Errors:  ApiErrors of routes are the reply, or an event of a stream that has begun.
#pragma once

#include <ctime>
#include <string>

#include "server/metrics.h"
#include "server/model_pool.h"
#include "server/routes/attachments.h"
#include "server/routes/library.h"
#include "server/routes/mcp.h"
#include "server/routes/route_table.h"
#include "server/store/response_store.h"
#include "server/worker_pool.h"

namespace slipstream {

// What the routes use.
struct RouteParts {
  ModelPool& models;
  LibraryRoutes* library;         // null: clients cannot manage models
  McpRoutes* mcp;                 // null: clients do not see the index
  AttachmentRoutes* attachments;  // null: clients cannot attach files
  ResponseStore& responses;
  WorkerPool& workers;
  const Metrics& metrics;
  std::string build_info;
  std::time_t started;  // when the server started
};

// Adds all routes below. REQUIRES: the parts outlive the table.
void add_routes(RouteTable& table, const RouteParts& parts);

void add_attachment_routes(RouteTable& table, const RouteParts& parts);
void add_chat_routes(RouteTable& table, const RouteParts& parts);
void add_completion_routes(RouteTable& table, const RouteParts& parts);
void add_embedding_routes(RouteTable& table, const RouteParts& parts);
void add_infill_routes(RouteTable& table, const RouteParts& parts);
void add_library_routes(RouteTable& table, const RouteParts& parts);
void add_mcp_routes(RouteTable& table, const RouteParts& parts);
void add_messages_routes(RouteTable& table, const RouteParts& parts);
void add_model_routes(RouteTable& table, const RouteParts& parts);
void add_ollama_model_routes(RouteTable& table, const RouteParts& parts);
void add_ollama_routes(RouteTable& table, const RouteParts& parts);
void add_props_routes(RouteTable& table, const RouteParts& parts);
void add_rerank_routes(RouteTable& table, const RouteParts& parts);
void add_response_routes(RouteTable& table, const RouteParts& parts);
void add_status_routes(RouteTable& table, const RouteParts& parts);
void add_token_routes(RouteTable& table, const RouteParts& parts);

}  // namespace slipstream
