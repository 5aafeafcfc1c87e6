// What turns have in common: how large an answer may be, and its request to the engine.
//
// Threads: immutable. Errors: ApiErrors that name the field of the prompt, `param`.
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

// Whether so long a text could fit at all, before it is split: that takes seconds for megabytes.
[[nodiscard]] ApiResult<void> check_length(const Vocabulary& vocabulary, const std::string& param,
                                           std::string_view text, int n_context);

// As the model reads it. A text that must have more than n_tokens_max is refused before it is
// split.
[[nodiscard]] ApiResult<std::vector<Token>> to_tokens(const Vocabulary& vocabulary,
                                                      const std::string& param, Prompt prompt,
                                                      int n_tokens_max);

// As many tokens as were asked for, or as fit; a prompt that leaves no room, or less than was asked
// for, is context_length_exceeded.
[[nodiscard]] ApiResult<int> tokens_to_generate(const std::string& param, std::size_t n_prompt,
                                                const GenerationOptions& options, int n_context);

// Of several answers to one prompt, each has its own seed, and the first the one that was given.
[[nodiscard]] GenerateRequest make_request(const GenerationOptions& options,
                                           std::vector<Token> prompt, int n_tokens_max, int idx,
                                           const Client& client);

}  // namespace slipstream
