// Models for people who have none: a short list of ours, and what each would be here.
//
// The hub says what a repository has and how large it is. The forecast says with which context and
// KV scheme it fits, from the model's sizes as they are written here: its file is not here yet
// (docs/decisions/034-recommended-models.md).
//
// Threads: thread-safe once ggml's backends are loaded.
// Errors:  choose_for(): those of engine/forecast/kv_choice.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "cli/serve/serve.h"
#include "engine/forecast/kv_choice.h"

namespace slipstream::serve {

struct Recommendation {
  std::string_view repo;   // "org/repo"
  std::string_view about;  // for people
  // Of the model, as its config.json has them.
  std::string_view architecture;  // GGUF's name
  std::int64_t n_context;
  std::int64_t n_layers;
  std::int64_t n_embd;
  std::int64_t n_ff;  // of one expert, if there are several
  std::int64_t n_heads;
  std::int64_t n_kv_heads;
  std::int64_t head_dim;
  std::int64_t n_experts = 0;
  std::int64_t n_experts_used = 0;
  bool has_tied_embeddings = false;
};

// The one to take first, if it fits, comes first.
[[nodiscard]] std::span<const Recommendation> recommendations();

// The scheme and context with which it would be loaded, as of an installed one (cli/kv_choice.h).
// weights_bytes: of its file.
[[nodiscard]] Result<KvChoice> choose_for(const Recommendation& model, std::uint64_t weights_bytes,
                                          std::uint64_t available_bytes, const Options& options,
                                          bool has_plugin);

}  // namespace slipstream::serve
