// What a libllama context takes beside the weights: caches, results of a batch, notes.
//
// Caches follow from the geometry exactly. Results of a batch lie in a buffer that libllama plans
// by the graph of each architecture; ours is an estimate from the geometry, made of the largest
// places of a graph (feed-forward, experts, attention, recurrent state), fitted to what libllama
// 0.7.0 reserves for the shapes of tests/fixtures. Notes are what libllama keeps in vectors and
// maps.
//
// Threads: immutable. Errors: check_cache gives kUnsupported where libllama refuses the scheme.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/forecast/model_geometry.h"
#include "engine/model/kv_scheme.h"

namespace slipstream {

// The context as engine/model/model.h makes it: flash attention, a unified cache, windows kept in
// full, batches of n_ubatch, one output for each sequence.
struct ContextShape {
  std::int64_t n_ctx = 0;  // 0: what the model was trained for
  std::int64_t n_sequences_max = 1;
  std::int64_t n_ubatch = 512;
  std::int64_t n_threads = 1;
};

[[nodiscard]] bool can_compress(const AttentionLayer& layer);

[[nodiscard]] Result<void> check_cache(const ModelGeometry& model, const KvScheme& scheme);
// Only for what check_cache has accepted.
[[nodiscard]] std::uint64_t cache_bytes(const ModelGeometry& model, const KvScheme& scheme,
                                        const ContextShape& shape);
[[nodiscard]] std::uint64_t compute_bytes(const ModelGeometry& model, const ContextShape& shape);
[[nodiscard]] std::uint64_t notes_bytes(const ModelGeometry& model, const KvScheme& scheme,
                                        const ContextShape& shape);

}  // namespace slipstream
