// GenerationOptions: the fields that requests for completions and for chat have in common. Their
// names are OpenAI's, or llama.cpp's and vLLM's if OpenAI has no such field (top_k, min_p,
// repeat_penalty, dry_...).
//
// Threads: plain data. Errors: kept in the JsonFields (json_fields.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/sampling/sampling_params.h"
#include "server/api/json_fields.h"

namespace slipstream {

inline constexpr int kTopLogprobsMax = 20;  // OpenAI's limit

struct GenerationOptions {
  std::string model;              // empty: the only one, or the first
  int n = 1;                      // number of answers
  std::optional<int> max_tokens;  // none: as many as fit
  bool may_shorten = false;       // whether max_tokens may be reduced to what the context has left
  bool streams = false;
  bool wants_usage_in_stream = false;
  bool wants_progress = false;  // "return_progress": events while the prompt is computed
  bool wants_timings = false;   // "timings_per_token": timings in each chunk
  SamplingParams sampling;
  std::vector<std::string> stops;
  bool ignores_end = false;
};

[[nodiscard]] GenerationOptions read_generation_options(JsonFields& fields);

}  // namespace slipstream
