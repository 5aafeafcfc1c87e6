// POST /v1/embeddings.
//
// Threads: thread-safe. Errors: ApiErrors.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "server/http/http_exchange.h"
#include "server/routes/generation.h"
#include "server/served_model.h"

namespace slipstream {

boost::asio::awaitable<ApiResult<void>> answer_embeddings(ServedModel& model,
                                                          HttpExchange& exchange, const Json& body,
                                                          const Client& client);

}  // namespace slipstream
