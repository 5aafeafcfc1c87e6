// in_words_of_responses(): an error of a ChatRequest, or of what became of it, with the names that
// fields have in a ResponsesRequest.
//
// Threads: immutable.
#pragma once

#include <string>
#include <vector>

#include "server/api/api_error.h"

namespace slipstream {

// tool_paths: as of ResponseTools.
[[nodiscard]] ApiError in_words_of_responses(ApiError error,
                                             const std::vector<std::string>& tool_paths);

}  // namespace slipstream
