// PieceQueries: the queries of one piece, prepared for the pass over its chunks. Each is rotated,
// or transformed to the basis of fitted keys, and quantised to the digits that key bytes are
// multiplied with. PieceScratch holds the numbers.
//
// Threads: one owner. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "device/attention/mask_chunks.h"
#include "device/attention/piece_context.h"

namespace slipstream::turbo {

// One head of one row of the batch.
struct Query {
  std::int64_t row;
  std::int64_t head;
  const std::uint16_t* mask;     // null: every cell is visible
  const Visibility* visibility;  // of each chunk
  int own_chunk;                 // that of its own token; kUnknown: not written in this graph
  bool is_finite;

  static constexpr int kUnknown = -2;
  // Whether the query reads the 8-bit copy of a chunk, if there is one: it gives most of its weight
  // to these chunks.
  [[nodiscard]] bool wants_precise(int chunk) const {
    return own_chunk != kUnknown && (chunk == own_chunk || chunk + 1 == own_chunk || chunk == 0);
  }
};

class PieceQueries {
 public:
  explicit PieceQueries(const PieceContext& context);

  [[nodiscard]] std::size_t size() const { return n_; }
  [[nodiscard]] const Query& operator[](std::size_t q) const { return queries_[q]; }
  // Replaces what a query sees of each chunk. REQUIRES: it sees nothing that it did not see before.
  void see_only(std::size_t q, const Visibility* visibility) {
    queries_[q].visibility = visibility;
  }
  // Whether some query may want the 8-bit copy of the chunk. Most chunks are far from all queries.
  [[nodiscard]] bool may_want_precise(int chunk) const {
    return has_own_chunks_ &&
           (chunk == 0 || (first_own_chunk_ <= chunk + 1 && chunk <= last_own_chunk_));
  }

 private:
  void prepare(const PieceContext& context, std::size_t q);
  void quantise_all(const PieceContext& context);
  void quantise(const CacheSide& keys, QuantisedQueries& into, std::size_t q,
                std::span<const float> vector) const;

  std::size_t n_;
  bool has_own_chunks_;
  int first_own_chunk_ = std::numeric_limits<int>::max();
  int last_own_chunk_ = Query::kUnknown;
  Query queries_[kQueriesMax];
};

}  // namespace slipstream::turbo
