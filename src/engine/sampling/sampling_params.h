// SamplingParams: how the next token is chosen from a model's logits. The defaults sample from the
// model's own distribution, unchanged.
//
// Threads: plain data.
// Errors:  check() refuses values out of range (kInvalidArgument); the message names the parameter
//          as a client writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/request.h"

namespace slipstream {

struct LogitBias {
  Token token;
  float bias;  // added to the token's logit; minus infinity bans it
};

// Penalizes tokens that would continue a repetition; longer repetitions cost more ("don't repeat
// yourself", https://github.com/oobabooga/text-generation-webui/pull/5677).
struct DryParams {
  float multiplier = 0;  // 0: off
  float base = 1.75F;    // penalty: multiplier * base ^ (length of the repetition - allowed_length)
  int allowed_length = 2;  // repetitions up to this length cost nothing
  int last_n = 4096;       // how far back to look for repetitions
  std::vector<std::string> sequence_breakers = {"\n", ":", "\"", "*"};  // repetitions end at these
};

// Where a model reasons before it answers (reasoning_watch.h): the texts around its reasoning.
struct ReasoningParams {
  std::string open = {};  // empty: the model is not known to reason
  std::vector<std::string> ends = {};
  std::string forced_end = {};           // written when n_tokens_max is reached
  bool opens_anywhere = false;           // otherwise only at the answer's start or after reasoning
  bool is_open = false;                  // the prompt opened it
  std::optional<int> n_tokens_max = {};  // of reasoning; none: no limit
};

struct SamplingParams {
  float temperature = 1;  // 0: always the most probable token
  int top_k = 0;          // keep the k most probable; 0: all
  float top_p = 1;        // keep the most probable ones that together have p; 1: all
  float min_p = 0;        // keep those with at least min_p times the highest probability; 0: all
  float typical_p = 1;    // keep those nearest the expected surprise that together have p; 1: all

  // For tokens among the last penalty_last_n, prompt included: logits are divided by repeat_penalty
  // (multiplied if negative), then lowered by presence_penalty once and by frequency_penalty for
  // each occurrence.
  float repeat_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  int penalty_last_n = 64;
  DryParams dry = {};

  std::vector<LogitBias> logit_bias = {};
  // The answer ends before one of these, as before the model's own end-of-text tokens. None of both
  // is chosen as one of the first n_tokens_min, unless the grammar leaves nothing else.
  std::vector<Token> stop_tokens = {};
  int n_tokens_min = 0;
  std::optional<std::uint32_t> seed = {};  // none: a random one each time
  std::string grammar = {};                // GBNF (grammar.h), from its rule "root"; empty: none
  ReasoningParams reasoning = {};
  int n_top_logprobs = -1;  // in addition to the chosen token's; -1: no log-probabilities at all
};

// Does not check the grammar's text: Sampler::create() parses it.
[[nodiscard]] Result<void> check(const SamplingParams& params, int n_vocab);

}  // namespace slipstream
