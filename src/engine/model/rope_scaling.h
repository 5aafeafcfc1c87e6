// RopeScaling: how positions are rotated into keys and queries, so that a model can read farther
// than it was trained for. The numbers are llama.cpp's; what is not set is the model's own.
//
// Keys in the cache are rotated, so what was computed with one setting is of no use with another:
// states on disk (model_fingerprint.h) and calibration profiles.
//
// Threads: immutable. Errors: none; flags are checked where they are read.
#pragma once

#include <llama.h>

#include <cstdint>
#include <string>

namespace slipstream {

struct RopeScaling {
  std::string type = {};           // "none", "linear", "yarn"; empty: the model's own
  float freq_base = 0;             // 0: the model's own
  float freq_scale = 0;            // 1 / 4 for four times the context; 0: the model's own
  std::int64_t yarn_orig_ctx = 0;  // that the model was trained for; 0: what the model says
  float yarn_ext_factor = -1;      // negative: the model's own, as below
  float yarn_attn_factor = -1;
  float yarn_beta_fast = -1;
  float yarn_beta_slow = -1;

  bool operator==(const RopeScaling&) const = default;
  [[nodiscard]] bool is_own() const { return *this == RopeScaling{}; }
};

void apply(const RopeScaling& rope, llama_context_params& params);

// One text for one setting, such as "yarn scale 0.25"; empty for the model's own.
[[nodiscard]] std::string to_text(const RopeScaling& rope);

// The context that a model has with it. n_trained: the model's own, n_original: what it had before
// its own scaling (0: it has none).
[[nodiscard]] std::int64_t scaled_context(const RopeScaling& rope, std::int64_t n_trained,
                                          std::int64_t n_original);

}  // namespace slipstream
