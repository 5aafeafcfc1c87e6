// VectorStore: the vectors of an index's chunks, in its file.
//
//   embedder      the model that they are of, one for an index
//   vector        a packed vector, once for every different text, under the hash of the text
//   chunk_vector  which chunk has which
//
// So a file that is renamed keeps its vectors, as its chunks stay; of a file that is edited only
// the chunks that changed are computed again; and a piece that stands in several files is computed
// once. Chunks that are gone are forgotten by forget_unused(), until when nothing finds them.
//
// Writing needs no writer's lock: tables of their own are written in short transactions.
//
// Threads: as the Database. Errors: as the Database.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/zstd_frame.h"
#include "retrieval/dense/packed_vector.h"
#include "retrieval/store/content_writer.h"
#include "retrieval/store/schema.h"

namespace slipstream {

struct EmbedderInfo {
  std::string id;    // TextEmbedder::id()
  std::string path;  // where the model was, as the user named it
  int n_dimensions = 0;
  std::int64_t n_changes = 0;  // grows with every change of vectors
};

// nullopt: the index has no vectors.
[[nodiscard]] Result<std::optional<EmbedderInfo>> find_embedder(Database& database);
// Vectors of another model are removed.
[[nodiscard]] Result<void> set_embedder(Database& database, const EmbedderInfo& embedder);
// Removes all vectors.
[[nodiscard]] Result<void> remove_embedder(Database& database);

struct VectorCounts {
  std::int64_t n_with = 0;  // chunks of files that have a vector
  std::int64_t n_without = 0;
};
[[nodiscard]] Result<VectorCounts> count_vectors(Database& database,
                                                 std::optional<ProjectId> project = {});

// What an embedder reads of a chunk: the names that it defines, and its text.
[[nodiscard]] std::string text_to_embed(std::string_view names, std::string_view text);

class VectorStore {
 public:
  explicit VectorStore(Database& database) : database_(database) {}

  struct Pending {
    ChunkId chunk;
    std::string text;
    ContentHash hash;
  };
  // Chunks below this one without a vector, the newest first: what was just changed is soon found.
  [[nodiscard]] Result<std::vector<Pending>> pending(ChunkId below, int n_max);
  [[nodiscard]] Result<bool> is_known(const ContentHash& hash);

  struct New {
    ChunkId chunk;
    ContentHash hash;
    std::optional<PackedVector> vector;  // none: the text's is known
  };
  // In one transaction. kCancelled if the index has another embedder by now.
  [[nodiscard]] Result<void> add(const std::string& embedder_id, std::span<const New> vectors);
  [[nodiscard]] Result<void> forget_unused();

 private:
  Database& database_;
  FrameDecoder decoder_;
};

}  // namespace slipstream
