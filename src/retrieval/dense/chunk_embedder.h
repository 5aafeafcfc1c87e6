// embed_chunks(): gives every chunk of an index its vector.
//
// Commits every few chunks: an end by force loses seconds, and searches have what is there.
//
// Threads: as the Database; several processes may do it at once. Errors: as the Database and the
// embedder; kCancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>

#include "base/result.h"
#include "retrieval/dense/text_embedder.h"
#include "retrieval/dense/vector_store.h"

namespace slipstream {

struct EmbedSummary {
  std::int64_t n_chunks = 0;    // that have got a vector
  std::int64_t n_computed = 0;  // the others' texts were known
  double seconds = 0;
};

using OnEmbedProgress = std::function<void(std::int64_t n_done, std::int64_t n_all)>;
// REQUIRES: set_embedder() with this embedder.
[[nodiscard]] Result<EmbedSummary> embed_chunks(Database& database, TextEmbedder& embedder,
                                                const std::stop_token& stop,
                                                const OnEmbedProgress& on_progress = {});

}  // namespace slipstream
