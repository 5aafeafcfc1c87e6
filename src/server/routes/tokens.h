// POST /tokenize and /detokenize, under vLLM's names for the fields.
//
// Threads: thread-safe. Errors: ApiErrors.
#pragma once

#include "server/client.h"
#include "server/http/http_exchange.h"
#include "server/json.h"
#include "server/routes/prepared_answer.h"
#include "server/served_model.h"

namespace slipstream {

// On a worker.
[[nodiscard]] Prepared prepare_tokenize(ServedModel& model, HttpExchange& exchange, Json& body,
                                        const Client& client);
[[nodiscard]] Prepared prepare_detokenize(ServedModel& model, HttpExchange& exchange, Json& body,
                                          const Client& client);

}  // namespace slipstream
