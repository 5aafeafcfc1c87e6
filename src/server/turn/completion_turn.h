// begin_completion(): turns prompts into a Turn. All output of the model is content.
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

// Makes the checks that are possible before the request is read.
[[nodiscard]] ApiResult<void> check_completion(const ServedModel& model);

// Moves the prompts out of the request and returns them as tokens.
[[nodiscard]] ApiResult<std::vector<std::vector<Token>>> take_prompts(const ServedModel& model,
                                                                      CompletionRequest& request);

// REQUIRES: `prompts` come from take_prompts().
[[nodiscard]] ApiResult<std::unique_ptr<Turn>> begin_completion(
    ServedModel& model, HttpExchange& exchange, const CompletionRequest& request,
    const std::vector<std::vector<Token>>& prompts, const Client& client);

}  // namespace slipstream
