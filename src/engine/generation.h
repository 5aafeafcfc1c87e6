// Input and output of the engine: a request to generate, and the events about it.
//
// Threads: plain data. Listeners are called on the engine's thread, so they must be quick and must
// not throw. The last event of every request has an ending; no event follows it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/sampling_params.h"
#include "engine/vision/image_rows.h"

namespace slipstream {

struct GenerateRequest {
  std::vector<Token> prompt;
  // In the order of the prompt, which has their cells (image_key.h). Such a request does not speculate.
  std::vector<ImagePlace> images = {};
  int n_tokens_max = 0;
  SamplingParams sampling = {};
  std::vector<std::string> stops = {};
  bool ignores_end = false;           // generation continues past the model's end-of-text token
  bool shows_control_tokens = false;  // as text, except end tokens; for markup made of them
  // Numbers of prompt tokens after which other prompts may differ, in ascending order: where the
  // user first speaks, where the last message ends. A recurrent state is saved there.
  std::vector<int> boundaries = {};
  bool wants_prompt_logprobs = false;
  bool wants_progress = false;  // events while the prompt is computed
  std::string client = {};      // clients take turns
  int priority = 1;             // of the client: priority 2 gets twice the turns of priority 1
  Salt salt = 0;                // requests share cached prefixes only under the same salt
};

struct Usage {
  int n_prompt = 0;
  int n_cached = 0;  // prompt tokens taken from the cache
  // Prompt tokens that were computed though an earlier request had computed them behind the same
  // tokens. In whole blocks (seen_prefixes.h).
  int n_recomputed = 0;
  int n_generated = 0;
  int n_reasoning = 0;  // of those generated
  int n_drafted = 0;    // guessed tokens that steps verified
  int n_accepted = 0;   // of these; each saved a step
  // From its first step to its first token, and from there to the last: without the wait before.
  std::chrono::nanoseconds prompt_time{0};
  std::chrono::nanoseconds generation_time{0};
};

// How much of a prompt is there.
struct PromptProgress {
  int n_prompt = 0;
  int n_cached = 0;  // not computed again
  int n_done = 0;    // those included
};

struct Ending {
  FinishReason reason;
  std::string matched_stop = {};  // set if a stop string matched
  std::string error = {};         // set if the request failed
  Usage usage = {};
};

struct Event {
  std::string text = {};             // valid UTF-8 without any part of a stop string; may be empty
  std::vector<Sampled> tokens = {};  // new tokens; their text may come in a later event
  // From the prompt's second token on; only if requested.
  std::vector<TokenLogprobs> prompt_logprobs = {};
  std::optional<PromptProgress> progress = {};  // alone in its event; only if requested
  Usage usage = {};                             // so far; not beside progress
  std::optional<Ending> ending = {};
};
using Listener = std::function<void(const Event&)>;

}  // namespace slipstream
