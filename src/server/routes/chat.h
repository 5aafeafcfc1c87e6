// POST /v1/chat/completions.
//
// Threads: thread-safe. Errors: ApiErrors, as the reply or, where it has begun, as an event of it.
#pragma once

#include "server/client.h"
#include "server/http/http_exchange.h"
#include "server/json.h"
#include "server/routes/prepared_answer.h"
#include "server/served_model.h"

namespace slipstream {

// Given to the engine, or why not. On a worker.
[[nodiscard]] Prepared prepare_chat(ServedModel& model, HttpExchange& exchange, Json& body,
                                    const Client& client);

}  // namespace slipstream
