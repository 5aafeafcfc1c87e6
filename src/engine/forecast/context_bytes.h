// What a libllama context takes besides the weights: caches, results of a batch, bookkeeping.
//
// Cache sizes follow exactly from the geometry. libllama plans the buffer for results of a batch
// from the graph of each architecture. Here its size is estimated from the largest parts of a graph
// (feed-forward, experts, attention, recurrent state), fitted to what libllama 0.7.0 reserves for
// the shapes of tests/fixtures. Bookkeeping ("notes") is what libllama keeps in vectors and maps.
//
// Threads: immutable. Errors: check_cache(): kUnsupported if libllama refuses the scheme.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/result.h"
#include "engine/forecast/model_geometry.h"
#include "engine/model/kv_scheme.h"

namespace slipstream {

// The context that engine/model/model.h makes: flash attention, a unified cache, full-size windows,
// batches of n_ubatch.
struct ContextShape {
  std::int64_t n_ctx = 0;  // 0: the context that the model was trained for
  std::int64_t n_sequences_max = 1;
  std::int64_t n_ubatch = 512;
  std::int64_t n_threads = 1;
  std::int64_t n_outputs_max = 1;  // of a batch; more if there are more sequences
  bool has_drafts = false;         // found in what sequences have said
  // Of codes that need not be in memory, so many bytes are; 0: all are. Only schemes that limit what
  // is read have such codes.
  std::uint64_t kv_memory_bytes = 0;

  [[nodiscard]] std::int64_t n_outputs() const { return std::max(n_sequences_max, n_outputs_max); }
};

[[nodiscard]] bool can_compress(const AttentionLayer& layer);

[[nodiscard]] Result<void> check_cache(const ModelGeometry& model, const KvScheme& scheme);
// REQUIRES: check_cache() has accepted the scheme.
[[nodiscard]] std::uint64_t cache_bytes(const ModelGeometry& model, const KvScheme& scheme,
                                        const ContextShape& shape);
[[nodiscard]] std::uint64_t compute_bytes(const ModelGeometry& model, const ContextShape& shape);
[[nodiscard]] std::uint64_t notes_bytes(const ModelGeometry& model, const KvScheme& scheme,
                                        const ContextShape& shape);

}  // namespace slipstream
