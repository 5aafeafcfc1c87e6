// The routes of the server. Each file of this folder adds its own to the table.
//
// Threads: add_...() before the server listens; what they add is thread-safe. Errors: of routes:
// ApiErrors, as the reply or, where it has begun, as an event of it.
#pragma once

#include <ctime>
#include <string>

#include "server/metrics.h"
#include "server/model_pool.h"
#include "server/routes/library.h"
#include "server/routes/route_table.h"
#include "server/store/response_store.h"
#include "server/worker_pool.h"

namespace slipstream {

// What routes work with.
struct RouteParts {
  ModelPool& models;
  LibraryRoutes* library;  // null: clients manage no models
  ResponseStore& responses;
  WorkerPool& workers;
  const Metrics& metrics;
  std::string build_info;
  std::time_t started;  // when the server did
};

// All of these. REQUIRES: the parts outlive the table.
void add_routes(RouteTable& table, const RouteParts& parts);

void add_chat_routes(RouteTable& table, const RouteParts& parts);
void add_completion_routes(RouteTable& table, const RouteParts& parts);
void add_embedding_routes(RouteTable& table, const RouteParts& parts);
void add_library_routes(RouteTable& table, const RouteParts& parts);
void add_messages_routes(RouteTable& table, const RouteParts& parts);
void add_model_routes(RouteTable& table, const RouteParts& parts);
void add_props_routes(RouteTable& table, const RouteParts& parts);
void add_response_routes(RouteTable& table, const RouteParts& parts);
void add_status_routes(RouteTable& table, const RouteParts& parts);
void add_token_routes(RouteTable& table, const RouteParts& parts);

}  // namespace slipstream
