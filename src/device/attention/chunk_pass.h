// ChunkPass: computes the attention of a piece's queries over its chunks, one chunk after the
// other, with an online softmax: scores, weights, weighted sum of the values. PieceScratch holds
// the intermediate state.
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

  // The first chunk from this one on that some query sees, or the end of the piece.
  [[nodiscard]] int next_seen(int chunk) const;

  // Processes chunks from `first`, which some query sees, up to `end`. Called for all of the piece,
  // in the order of the cache.
  // REQUIRES: if AMX is used, this thread has an AmxScope for the task's shape. The codes are held.
  void process(int first, int end);

 private:
  // Consecutive queries to which at least a part of the chunk is visible.
  struct Run {
    std::size_t first;
    std::size_t n;
  };

  void process_chunk(int idx);
  void find_runs(int chunk, bool has_copy, bool precisely);
  void read_from(const CacheSides& sides);
  void process_runs(const Chunk& chunk);
  void load(const Chunk& chunk);
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

  // What is being read: codes or 8-bit copies.
  const CacheSides* sides_;
  const QuantisedQueries* quantised_;
  const std::uint8_t* key_bytes_ = nullptr;  // expanded keys, or 8-bit codes in the cache itself

  std::size_t chunks_ahead_ = 1;  // to the chunk that is read next
  std::size_t n_runs_ = 0;
  Run runs_[kQueriesMax / 2 + 1];
  const float* bias_rows_[kQueriesMax];  // null: all of the chunk is visible
};

}  // namespace slipstream::turbo
