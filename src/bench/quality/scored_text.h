// Scored text: a model reads a text in chunks, each from an empty cache, and gives its logits for
// the second half of each chunk, as llama-perplexity -c DEPTH does. So every token that counts has
// between half of DEPTH and all of it before it.
//
// Threads: read_chunk() is for the thread that owns the model.
// Errors:  cut(): kInvalidArgument for a text that is too short. read_chunk(): kUnsupported with
//          libllama's status, and what `take` returns.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/model/model.h"
#include "engine/request.h"

namespace slipstream::quality {

using Tokens = std::vector<Token>;

// Chunks of `depth` tokens from the beginning of the text, n_chunks_max of them or as many as there
// are; their first token is `begin` if the model wants texts to start with one.
[[nodiscard]] Result<std::vector<Tokens>> cut(std::span<const Token> text, int depth,
                                              int n_chunks_max, std::optional<Token> begin);

// Tokens of a chunk that are scored: those with a successor in the second half.
constexpr int n_scored(int depth) { return depth - 1 - depth / 2; }

// Logits of all tokens after one of the chunk, and the token that really follows.
using TakeLogits = std::function<Result<void>(std::span<const float> logits, Token next)>;

// Steps of n_step_tokens at a time (ModelOptions), all of which may have logits.
[[nodiscard]] Result<void> read_chunk(Model& model, std::span<const Token> chunk, int n_step_tokens,
                                      const TakeLogits& take);

}  // namespace slipstream::quality
