// model_route(): a POST route whose body names a model.
//
// A worker prepares an answer from the body, and the connection sends it. If the model is not
// loaded, the request waits for it, and then a worker processes the body again. A stream begins
// before that wait, because clients give up on silence.
//
// Threads: as RouteTable. Errors: ApiErrors of the body, of the pool and of the route.
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

// Prepares the answer as far as possible without waiting, for example by submitting requests to the
// engine. Returns an error if the request is refused. Runs on a worker.
using Prepare = std::function<Prepared(ServedModel& model, HttpExchange& exchange, Json& body,
                                       const Client& client)>;

// What a route with streamed answers can do before the model is loaded.
struct StreamedAnswers {
  // Whether this body asks for a stream, or an error if the body is wrong. Runs on a worker.
  std::function<ApiResult<bool>(Json& body, const Client& client)> is_asked_for;
  // Makes the writer of a stream while the model is being loaded. `model` has only its name, and
  // outlives the writer.
  std::unique_ptr<TurnWriter> (*early_writer)(const ServedModel& model);
};

// For models that write: they have an engine. Others are refused. REQUIRES: the parts outlive the
// route.
[[nodiscard]] Route model_route(std::string_view path, Prepare prepare, const RouteParts& parts,
                                StreamedAnswers streams = {});

// Also for models that only read.
[[nodiscard]] Route any_model_route(std::string_view path, Prepare prepare,
                                    const RouteParts& parts);

}  // namespace slipstream
