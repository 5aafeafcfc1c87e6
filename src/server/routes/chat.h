// POST /v1/chat/completions.
//
// Threads: thread-safe. Errors: ApiErrors, as the reply or, where it has begun, as an event of it.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "server/http/http_exchange.h"
#include "server/routes/generation.h"
#include "server/served_model.h"

namespace slipstream {

// Fails before anything is sent; what fails later is sent.
boost::asio::awaitable<ApiResult<void>> answer_chat(ServedModel& model, HttpExchange& exchange,
                                                    const Json& body, const Client& client);

}  // namespace slipstream
