// Chooses a KV scheme together with a context, where the user asked for no context
// (docs/decisions/020-default-context.md).
//
// The context is the model's whole one, or what fits into the memory that may be taken unasked. The
// scheme is the best with which kContextEnough tokens fit, or all that the model has; if there is
// none, the smallest. So a scheme of fewer bits is taken for a context that is short, not for one
// that is long already.
//
// Threads: as in memory_forecast.h. Errors: as in memory_forecast.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "engine/forecast/kv_choice.h"

namespace slipstream {

// What the first prompts of coding agents need (docs/agents.md).
inline constexpr std::int64_t kContextEnough = 32768;
// Nobody is given less than this unasked, unless the model has less.
inline constexpr std::int64_t kContextLeast = 8192;

// What a model may take unasked. The rest is for other programs, and for what the forecast does not
// count. n_models: how many share the memory.
[[nodiscard]] constexpr std::uint64_t unasked_bytes(std::uint64_t available_bytes,
                                                    int n_models = 1) {
  return available_bytes / 4 * 3 / static_cast<std::uint64_t>(n_models);
}

// schemes: the best first. shape.n_ctx: the whole context. nullopt: not even kContextLeast tokens
// fit into n_bytes with any of the schemes.
[[nodiscard]] Result<std::optional<KvChoice>> choose_context(const ModelProfile& profile,
                                                             std::span<const KvScheme> schemes,
                                                             std::uint64_t n_bytes,
                                                             const ContextShape& shape);

}  // namespace slipstream
