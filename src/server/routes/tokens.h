// POST /tokenize and /detokenize, under vLLM's names for the fields.
//
// Threads: thread-safe. Errors: ApiErrors.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "server/http/http_exchange.h"
#include "server/routes/generation.h"
#include "server/served_model.h"

namespace slipstream {

boost::asio::awaitable<ApiResult<void>> answer_tokenize(ServedModel& model, HttpExchange& exchange,
                                                        const Json& body, const Client& client);
boost::asio::awaitable<ApiResult<void>> answer_detokenize(ServedModel& model,
                                                          HttpExchange& exchange, const Json& body,
                                                          const Client& client);

}  // namespace slipstream
