// What routes that generate have in common: how large an answer may be, its seed, its end.
//
// Threads: immutable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/generation.h"
#include "engine/text/vocabulary.h"
#include "server/api/api_error.h"
#include "server/api/generation_options.h"
#include "server/api/prompts.h"
#include "server/client_account.h"

namespace slipstream {

// Who asks.
struct Client {
  std::string name;                             // clients take turns
  Salt salt = 0;                                // and see no prefixes of each other's
  int priority = 1;                             // 2 has twice the turns of 1
  std::shared_ptr<ClientAccount> account = {};  // null: nobody counts; shared with the list of keys

  void charge_prompt(std::size_t n_tokens) const {
    if (account) account->charge_prompt(n_tokens);
  }
};

// Whether so long a text could fit at all, before it is split: that takes seconds for megabytes.
[[nodiscard]] ApiResult<void> check_length(const Vocabulary& vocabulary, const std::string& param,
                                           std::string_view text, int n_context);

// As the model reads it; `param` is its field in the request. A text that must have more than
// n_tokens_max is refused before it is split.
[[nodiscard]] ApiResult<std::vector<Token>> to_tokens(const Vocabulary& vocabulary,
                                                      const std::string& param, Prompt prompt,
                                                      int n_tokens_max);

// As many tokens as were asked for, or as fit; a prompt that leaves no room, or less than was asked
// for, is context_length_exceeded. `param` is the prompt's field in the request.
[[nodiscard]] ApiResult<int> tokens_to_generate(const std::string& param, std::size_t n_prompt,
                                                const GenerationOptions& options, int n_context);

// Of several answers to one prompt, each has its own seed, and the first the one that was given.
[[nodiscard]] GenerateRequest make_request(const GenerationOptions& options,
                                           std::vector<Token> prompt, int n_tokens_max, int idx,
                                           const Client& client);

// "stop" or "length"; null where it has not ended.
[[nodiscard]] Json finish_reason_of(const Ending& ending);

// "cmpl-4f3a...": no two alike.
[[nodiscard]] std::string new_id(std::string_view prefix);

}  // namespace slipstream
