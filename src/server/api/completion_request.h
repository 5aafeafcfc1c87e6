// CompletionRequest: the body of POST /v1/completions.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <string>
#include <vector>

#include "server/api/generation_options.h"
#include "server/api/prompts.h"

namespace slipstream {

struct CompletionRequest {
  GenerationOptions options;
  std::vector<Prompt> prompts;  // each is answered options.n times
  bool echoes = false;          // the answer begins with the prompt
  std::string suffix = {};      // what comes after the answer: prompts are what comes before it
};

[[nodiscard]] ApiResult<CompletionRequest> read_completion_request(const Json& body);

}  // namespace slipstream
