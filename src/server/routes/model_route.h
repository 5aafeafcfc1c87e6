// model_route(): a POST whose body names a model and what is wanted of it.
//
// The body is read, a worker makes an answer of it, and the connection sends that. Where the model
// is not loaded, the request waits for it and is worked on once more. A stream begins before that
// wait: clients give up on silence.
//
// Threads: as of the table. Errors: ApiErrors of the body, of the pool and of the route.
#pragma once

#include <functional>
#include <memory>
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

// What a route whose answers may be streams knows without the model.
struct StreamedAnswers {
  // Whether this body asks for a stream, or what is wrong with it. On a worker, without the model.
  std::function<ApiResult<bool>(Json& body, const Client& client)> is_asked_for;
  // Of a stream while the model is loaded. Only the model's name is there; it outlives the writer.
  std::unique_ptr<TurnWriter> (*early_writer)(const ServedModel& model);
};

// REQUIRES: the parts outlive the route.
[[nodiscard]] Route model_route(std::string_view path, Prepare prepare, const RouteParts& parts,
                                StreamedAnswers streams = {});

}  // namespace slipstream
