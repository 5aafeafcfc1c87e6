// POST /v1/embeddings.
//
// Threads: thread-safe. Errors: ApiErrors.
#pragma once

#include "server/client.h"
#include "server/http/http_exchange.h"
#include "server/json.h"
#include "server/routes/prepared_answer.h"
#include "server/served_model.h"

namespace slipstream {

// The tokens of its texts, or why it can have no embeddings. On a worker.
[[nodiscard]] Prepared prepare_embeddings(ServedModel& model, HttpExchange& exchange, Json& body,
                                          const Client& client);

}  // namespace slipstream
