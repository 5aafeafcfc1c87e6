// fill_prompt(): the prompt with which a model fills the place between two texts.
//
//   [repo]myproject\n [file]name\n text ... [file]filename\n [prefix]before [suffix]after [middle]
//
// The names in brackets are tokens of the vocabulary; without those of a repository, texts of other
// files stand between marks that are text. The order and the names are llama-server's, because models
// and editors know them. All texts are text: control tokens in them are not read.
//
// Threads: on a worker.
// Errors:  400 for a model without these tokens, and for a text that is longer than the context.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/fill_in.h"
#include "server/served_model.h"

namespace slipstream {

struct FillPrompt {
  std::vector<Token> tokens;
  std::size_t n_dropped = 0;  // chunks of other files that do not fit: the first ones
};

// n_tokens_after: that the answer may have, as far as that is known.
[[nodiscard]] ApiResult<FillPrompt> fill_prompt(const ServedModel& model, const FillIn& fill,
                                                int n_tokens_after);

}  // namespace slipstream
