// GenerationOptions: what requests for completions and for chat have in common, under OpenAI's
// names; beyond them llama.cpp's and vLLM's for what OpenAI lacks (top_k, min_p, repeat_penalty,
// dry_...).
//
// Threads: plain data. Errors: into the fields (json_fields.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/sampling/sampling_params.h"
#include "server/api/json_fields.h"

namespace slipstream {

inline constexpr int kTopLogprobsMax = 20;  // OpenAI's

struct GenerationOptions {
  std::string model;              // empty: the only one, or the first
  int n = 1;                      // answers
  std::optional<int> max_tokens;  // none: as many as fit
  bool may_shorten = false;       // max_tokens, to what the context has room for
  bool streams = false;
  bool wants_usage_in_stream = false;
  bool wants_progress = false;  // "return_progress": events while the prompt is computed
  bool wants_timings = false;   // "timings_per_token": in each chunk
  SamplingParams sampling;
  std::vector<std::string> stops;
  bool ignores_end = false;
};

[[nodiscard]] GenerationOptions read_generation_options(JsonFields& fields);

}  // namespace slipstream
