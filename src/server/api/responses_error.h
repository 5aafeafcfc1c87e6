// in_words_of_responses(): renames the fields in an error from the chat API's names to those of the
// Responses API, because a ResponsesRequest is served as a ChatRequest.
//
// Threads: immutable.
#pragma once

#include <string>
#include <vector>

#include "server/api/api_error.h"

namespace slipstream {

// tool_paths: ResponseTools::paths.
[[nodiscard]] ApiError in_words_of_responses(ApiError error,
                                             const std::vector<std::string>& tool_paths);

}  // namespace slipstream
