// GET /v1/models and GET /v1/models/NAME: what a client can name.
//
// Threads: thread-safe. Errors: ApiErrors.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <ctime>
#include <vector>

#include "server/http/http_exchange.h"
#include "server/model_pool.h"

namespace slipstream {

// Models of the library that are not loaded are listed, too: a request may name them. started: when
// the server did, which is all that there is to say about when a model was made.
boost::asio::awaitable<ApiResult<void>> answer_models(ModelPool& models, std::time_t started,
                                                      HttpExchange& exchange);
boost::asio::awaitable<ApiResult<void>> answer_one_model(ModelPool& models, std::string_view name,
                                                         std::time_t started,
                                                         HttpExchange& exchange);

}  // namespace slipstream
