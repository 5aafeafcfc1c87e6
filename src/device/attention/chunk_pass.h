// ChunkPass: attention of a piece's queries over its chunks, one chunk after the other, with an
// online softmax: scores, weights, weighted sum of the values. What it has so far is in
// PieceScratch.
//
// Threads: one owner. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/attention/cache_side.h"
#include "device/attention/chunk_kernels.h"
#include "device/attention/piece_context.h"
#include "device/attention/piece_queries.h"

namespace slipstream::turbo {

class ChunkPass {
 public:
  ChunkPass(const PieceContext& context, const PieceQueries& queries);

  // REQUIRES: an AmxScope of this thread, if there is AMX, for the task's shape.
  void process_chunk(int idx);

 private:
  // Queries next to each other to which something of a chunk is visible.
  struct Run {
    std::size_t first;
    std::size_t n;
  };

  void find_runs(int chunk, bool has_copy, bool precisely);
  void read_from(const CacheSides& sides);
  void process_runs(const Chunk& chunk);
  void load(const Chunk& chunk);
  void read_mask(const Chunk& chunk, const Run& run);
  void score(const Chunk& chunk, std::size_t run_idx);
  void softmax(const Chunk& chunk, const Run& run);
  void weighted_sum(const Chunk& chunk, const Run& run);
  [[nodiscard]] DotRows dots_of(const Run& run, int part) const;
  [[nodiscard]] bool on_amx(int n_rows) const;

  const PieceContext& context_;
  const PieceQueries& queries_;
  PieceScratch& scratch_;
  AttentionParams params_;
  bool with_amx_;

  // What is being read: codes or copies in 8 bits.
  const CacheSides* sides_;
  const QuantisedQueries* quantised_;
  const std::uint8_t* key_bytes_ = nullptr;  // codes of 8 bits are read where they lie

  std::size_t n_runs_ = 0;
  Run runs_[kQueriesMax / 2 + 1];
  const float* bias_rows_[kQueriesMax];  // null: all of the chunk is visible
};

}  // namespace slipstream::turbo
