// CompletionRequest: the body of POST /v1/completions.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "engine/request.h"
#include "server/api/generation_options.h"

namespace slipstream {

using Prompt = std::variant<std::string, std::vector<Token>>;

struct CompletionRequest {
  GenerationOptions options;
  std::vector<Prompt> prompts;  // each is answered options.n times
  bool echoes = false;          // the prompt stands before the answer
};

[[nodiscard]] ApiResult<CompletionRequest> read_completion_request(const Json& body);

}  // namespace slipstream
