// Vectors for the pieces of an index: `slipstream index embed`, after `slipstream index add`, and
// beside `slipstream index watch`.
//
// Threads: as each function says. Errors: those of the index and of the model; kCancelled.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "base/result.h"
#include "cli/index/index.h"
#include "retrieval/dense/chunk_embedder.h"

namespace slipstream::index {

// With options.model a new embedder; without one the index's own. An end by force loses seconds.
[[nodiscard]] Result<void> embed_index(const Options& options);
// The same for what is new, if the index has an embedder.
[[nodiscard]] Result<void> embed_new(Database& database, int n_threads);

// Computes vectors of what is new while an object lives, in a thread of its own.
class BackgroundEmbedding {
 public:
  BackgroundEmbedding(std::string index_path, int n_threads);

 private:
  void run(const std::stop_token& stop);

  const std::string index_path_;
  const int n_threads_;
  std::jthread thread_;  // must be the last member: it uses all others
};

// For people.
[[nodiscard]] std::string format_embedding(const EmbedSummary& summary);

}  // namespace slipstream::index
