// PieceResult: finishes a piece. The output of a whole piece is normalised and written to the op. A
// part of a split piece stores its maximum, sum of weights and output in its slot; the thread that
// stores the last part merges all parts and writes the result.
//
// Threads: one owner; the parts of a split synchronise on its n_done. Errors: none.
#pragma once

#include <cstddef>

#include "device/attention/piece_context.h"
#include "device/attention/piece_queries.h"

namespace slipstream::turbo {

// The number of floats in a slot: max [query], sum of weights [query], output [query][value_dim].
constexpr std::size_t slot_floats(std::size_t n_queries, std::size_t value_dim) {
  return n_queries * (value_dim + 2);
}

class PieceResult {
 public:
  PieceResult(const PieceContext& context, const PieceQueries& queries)
      : context_(context), queries_(queries), scratch_(context.scratch) {}

  // REQUIRES: a ChunkPass has processed all chunks of the piece.
  void finish();

 private:
  void store_part();
  void merge_parts();
  void merge(std::size_t q, const float* part);
  void raise_max(std::size_t q, float max);
  void write(std::size_t q);
  [[nodiscard]] Split& split() const;
  [[nodiscard]] float* slot(int part) const;

  const PieceContext& context_;
  const PieceQueries& queries_;
  PieceScratch& scratch_;
};

}  // namespace slipstream::turbo
