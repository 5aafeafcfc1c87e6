// model_route(): a POST whose body names a model and what is wanted of it.
//
// The body is read, a worker makes an answer of it, and the connection sends that. Where the model
// is not loaded, the request waits for it and is worked on once more.
//
// Threads: as of the table. Errors: ApiErrors of the body, of the pool and of the route.
#pragma once

#include <functional>
#include <string_view>

#include "server/client.h"
#include "server/http/http_exchange.h"
#include "server/json.h"
#include "server/routes/prepared_answer.h"
#include "server/routes/route_table.h"
#include "server/routes/routes.h"
#include "server/served_model.h"

namespace slipstream {

// Given to the engine, or why not. On a worker, as far as it gets without waiting.
using Prepare = std::function<Prepared(ServedModel& model, HttpExchange& exchange, Json& body,
                                       const Client& client)>;

// REQUIRES: the parts outlive the route.
[[nodiscard]] Route model_route(std::string_view path, Prepare prepare, const RouteParts& parts);

}  // namespace slipstream
