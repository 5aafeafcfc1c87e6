// VectorCache: the vectors of an index in memory, for all searches of a process.
//
// A search compares its query with every vector: 40,000 of 384 numbers are 15 MB and take a few
// milliseconds, less than any structure over them would save
// (docs/decisions/025-vectors-are-scanned.md).
//
// Threads: thread-safe. Errors: get(): as the Database; kUnsupported for more than
// RetrievalLimits::vectors_max.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "retrieval/dense/packed_vector.h"
#include "retrieval/dense/vector_store.h"

namespace slipstream {

struct NearChunk {
  ChunkId chunk = 0;
  float cosine = 0;
};

// The vectors of a project. Immutable.
class VectorTable {
 public:
  explicit VectorTable(int n_dimensions);
  // REQUIRES: chunks come in ascending order.
  void add(ChunkId chunk, const PackedVector& vector);

  // The nearest chunks, the nearest first.
  [[nodiscard]] std::vector<NearChunk> nearest(const PackedVector& query, std::size_t n_max) const;
  // nullopt: the chunk has no vector.
  [[nodiscard]] std::optional<float> cosine(const PackedVector& query, ChunkId chunk) const;
  [[nodiscard]] std::size_t size() const { return chunks_.size(); }

 private:
  [[nodiscard]] std::vector<std::int8_t> pad(const PackedVector& query) const;

  std::size_t n_codes_;  // of a row, padded
  std::vector<ChunkId> chunks_;
  std::vector<float> scales_;
  std::vector<std::int8_t> codes_;  // [n_chunks, n_codes_]
};

class VectorCache {
 public:
  // As the index has them now, or had them a few seconds ago.
  [[nodiscard]] Result<std::shared_ptr<const VectorTable>> get(Database& database,
                                                               const EmbedderInfo& embedder,
                                                               ProjectId project);

 private:
  struct Entry {
    std::string embedder_id;
    std::int64_t n_changes = 0;
    std::chrono::steady_clock::time_point read;
    std::shared_ptr<const VectorTable> table;  // shared with the searches that use it
  };
  Mutex mutex_;
  std::map<ProjectId, Entry> entries_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream
