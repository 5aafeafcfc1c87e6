// begin_completion(): prompts become a turn, in which all that is written is content.
//
// Threads: on a worker. Errors: ApiErrors that name the field.
#pragma once

#include <memory>
#include <vector>

#include "server/api/completion_request.h"
#include "server/client.h"
#include "server/http/http_exchange.h"
#include "server/served_model.h"
#include "server/turn/turn.h"

namespace slipstream {

// What can be refused before anything is built for the request.
[[nodiscard]] ApiResult<void> check_completion(const ServedModel& model);

// The prompts as the model reads them. Takes them out of the request.
[[nodiscard]] ApiResult<std::vector<std::vector<Token>>> take_prompts(const ServedModel& model,
                                                                      CompletionRequest& request);

// REQUIRES: `prompts` are those of take_prompts().
[[nodiscard]] ApiResult<std::unique_ptr<Turn>> begin_completion(
    ServedModel& model, HttpExchange& exchange, const CompletionRequest& request,
    const std::vector<std::vector<Token>>& prompts, const Client& client);

}  // namespace slipstream
