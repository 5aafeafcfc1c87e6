// Scored text: a model reads a text in chunks, each from an empty cache, and returns its logits for
// the second half of each chunk, like llama-perplexity -c DEPTH. So every token that counts follows
// at least half of DEPTH and at most all of it.
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

// Cuts the beginning of the text into at most n_chunks_max chunks of `depth` tokens. The first
// token of each is `begin` if the model's texts start with one.
[[nodiscard]] Result<std::vector<Tokens>> cut(std::span<const Token> text, int depth,
                                              int n_chunks_max, std::optional<Token> begin);

// The number of scored tokens of a chunk: those in the second half that have a successor.
constexpr int n_scored(int depth) { return depth - 1 - depth / 2; }

// Gets the logits of all tokens at one position of the chunk, and the token that really follows.
using TakeLogits = std::function<Result<void>(std::span<const float> logits, Token next)>;

// Computes n_step_tokens at a time (ModelOptions). All of them may have logits. The last n_single
// tokens are computed one at a time, as the tokens of an answer are.
[[nodiscard]] Result<void> read_chunk(Model& model, std::span<const Token> chunk, int n_step_tokens,
                                      const TakeLogits& take, int n_single = 0);

}  // namespace slipstream::quality
