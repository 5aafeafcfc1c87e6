// What chat and completion turns have in common: the limit on an answer's length, and the request
// to the engine.
//
// Threads: immutable. Errors: ApiErrors that name the prompt's field, `param`.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generation.h"
#include "engine/text/vocabulary.h"
#include "server/api/api_error.h"
#include "server/api/generation_options.h"
#include "server/api/prompts.h"
#include "server/client.h"

namespace slipstream {

// Refuses a text that is too long to fit in any case. Call this before tokenizing, which takes
// seconds for megabytes.
[[nodiscard]] ApiResult<void> check_length(const Vocabulary& vocabulary, const std::string& param,
                                           std::string_view text, int n_context);

// Returns the prompt as tokens. A text that cannot have at most n_tokens_max tokens is refused
// before it is tokenized.
[[nodiscard]] ApiResult<std::vector<Token>> to_tokens(const Vocabulary& vocabulary,
                                                      const std::string& param, Prompt prompt,
                                                      int n_tokens_max);

// Returns the number of tokens that the answer may have: as many as requested, or as many as fit.
// If the prompt leaves no room, or less than requested, the error is context_length_exceeded.
[[nodiscard]] ApiResult<int> tokens_to_generate(const std::string& param, std::size_t n_prompt,
                                                const GenerationOptions& options, int n_context);

// idx: the number of the answer among those to the same prompt. Each has its own seed; answer 0 has
// the seed that the client gave.
[[nodiscard]] GenerateRequest make_request(const GenerationOptions& options,
                                           std::vector<Token> prompt, int n_tokens_max, int idx,
                                           const Client& client);

}  // namespace slipstream
