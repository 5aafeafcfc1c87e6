// SamplingParams: how the next token is chosen from a model's scores. The defaults sample from the
// model's own distribution, unchanged.
//
// Threads: plain data.
// Errors:  check() refuses what is out of range (kInvalidArgument) in a sentence that names the
//          parameter, as a client would write it.
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

// Penalizes tokens that would continue a repetition, the longer it is the more ("don't repeat
// yourself", https://github.com/oobabooga/text-generation-webui/pull/5677).
struct DryParams {
  float multiplier = 0;  // 0: off
  float base = 1.75F;    // penalty: multiplier * base ^ (length of the repetition - allowed_length)
  int allowed_length = 2;  // repetitions of so many tokens cost nothing yet
  int last_n = 4096;       // how far back repetitions are looked for
  std::vector<std::string> sequence_breakers = {"\n", ":", "\"", "*"};  // none reaches across these
};

struct SamplingParams {
  float temperature = 1;  // 0: the most probable token, always
  int top_k = 0;          // keep the k most probable; 0: all
  float top_p = 1;        // keep the most probable ones that together have p; 1: all
  float min_p = 0;        // keep those with at least min_p times the highest probability; 0: all
  float typical_p =
      1;  // keep the ones closest to the expected surprise that together have p; 1: all

  // Of tokens among the last penalty_last_n, prompt included: logits are divided by repeat_penalty
  // (multiplied if negative), then lowered by presence_penalty and, each time, frequency_penalty.
  float repeat_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  int penalty_last_n = 64;
  DryParams dry = {};

  std::vector<LogitBias> logit_bias = {};
  std::optional<std::uint32_t> seed = {};  // none: another one each time
  std::string grammar = {};                // GBNF (grammar.h), from its rule "root"; empty: none
  int n_top_logprobs = -1;  // beside the chosen token's; -1: no log-probabilities at all
};

// The grammar's text is not looked at: Sampler::create() parses it.
[[nodiscard]] Result<void> check(const SamplingParams& params, int n_vocab);

}  // namespace slipstream
