// What goes into the engine and what comes out: a request to generate, and events about it.
//
// Threads: plain data. Listeners are called on the engine's thread: they must be quick and must not
// throw; the last event of every request has an ending, and none comes after it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "engine/sampling/sampler.h"
#include "engine/sampling/sampling_params.h"

namespace slipstream {

struct GenerateRequest {
  std::vector<Token> prompt;
  int n_tokens_max = 0;
  SamplingParams sampling = {};
  std::vector<std::string> stops = {};
  bool ignores_end = false;           // the model's own end of text does not end it
  bool shows_control_tokens = false;  // as text, where they are no end; for markup made of them
  bool wants_prompt_logprobs = false;
  bool wants_progress = false;  // events while the prompt is computed
  std::string client = {};      // clients take turns
  int priority = 1;             // of the client: 2 has twice the turns of 1
  Salt salt = 0;                // a cached prefix is shared only under the same salt
};

struct Usage {
  int n_prompt = 0;
  int n_cached = 0;  // of the prompt, not computed again
  int n_generated = 0;
};

// How much of a prompt is there.
struct PromptProgress {
  int n_prompt = 0;
  int n_cached = 0;  // not computed again
  int n_done = 0;    // those included
};

struct Ending {
  FinishReason reason;
  std::string matched_stop = {};  // where a stop string was met
  std::string error = {};         // where it failed
  Usage usage = {};
};

struct Event {
  std::string text = {};             // valid UTF-8, never part of a stop string; may be empty
  std::vector<Sampled> tokens = {};  // new ones; their text may come later
  std::vector<TokenLogprobs> prompt_logprobs =
      {};                                       // from the prompt's second token on, if asked for
  std::optional<PromptProgress> progress = {};  // alone in its event, if asked for
  std::optional<Ending> ending = {};
};
using Listener = std::function<void(const Event&)>;

}  // namespace slipstream
