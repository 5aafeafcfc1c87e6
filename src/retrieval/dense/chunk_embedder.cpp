#include "retrieval/dense/chunk_embedder.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/check.h"

namespace slipstream {
namespace {

// Between two commits: some seconds of a small model's work.
constexpr int kChunksOfStep = 32;
constexpr ChunkId kAboveAll = std::numeric_limits<ChunkId>::max();

struct Step {
  std::vector<VectorStore::New> vectors;
  std::int64_t n_computed = 0;
};

Result<Step> compute(VectorStore& store, std::vector<VectorStore::Pending>& pending,
                     TextEmbedder& embedder, const std::stop_token& stop) {
  Step step;
  std::map<ContentHash, std::size_t> places;  // in `texts`
  std::vector<std::string> texts;
  for (VectorStore::Pending& chunk : pending) {
    const Result<bool> is_known = store.is_known(chunk.hash);
    if (!is_known) return std::unexpected(is_known.error());
    if (*is_known || !places.try_emplace(chunk.hash, texts.size()).second) continue;
    texts.push_back(std::move(chunk.text));
  }
  const Result<std::vector<std::vector<float>>> vectors = embedder.embed(texts, stop);
  if (!vectors) return std::unexpected(vectors.error());
  SLIP_CHECK(vectors->size() == texts.size(), "an embedder lost a text");
  for (const VectorStore::Pending& chunk : pending) {
    VectorStore::New one{.chunk = chunk.chunk, .hash = chunk.hash, .vector = std::nullopt};
    if (const auto place = places.find(chunk.hash); place != places.end()) {
      one.vector = pack((*vectors)[place->second]);
    }
    step.vectors.push_back(std::move(one));
  }
  step.n_computed = std::ssize(texts);
  return step;
}

}  // namespace

Result<EmbedSummary> embed_chunks(Database& database, TextEmbedder& embedder,
                                  const std::stop_token& stop, const OnEmbedProgress& on_progress) {
  const auto began = std::chrono::steady_clock::now();
  const Result<VectorCounts> counts = count_vectors(database);
  if (!counts) return std::unexpected(counts.error());
  EmbedSummary summary;
  VectorStore store(database);
  // Downwards, and again from above for what has come in the meantime.
  for (ChunkId below = kAboveAll;;) {
    Result<std::vector<VectorStore::Pending>> pending = store.pending(below, kChunksOfStep);
    if (!pending) return std::unexpected(pending.error());
    if (pending->empty() && below == kAboveAll) break;
    below = pending->empty() ? kAboveAll : pending->back().chunk;
    if (pending->empty()) continue;
    const Result<Step> step = compute(store, *pending, embedder, stop);
    if (!step) return std::unexpected(step.error());
    if (Result<void> added = store.add(embedder.id(), step->vectors); !added) {
      return std::unexpected(added.error());
    }
    summary.n_chunks += std::ssize(step->vectors);
    summary.n_computed += step->n_computed;
    if (on_progress) {
      on_progress(summary.n_chunks, std::max(counts->n_without, summary.n_chunks));
    }
  }
  if (Result<void> forgotten = store.forget_unused(); !forgotten) {
    return std::unexpected(forgotten.error());
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return summary;
}

}  // namespace slipstream
