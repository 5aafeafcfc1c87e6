// WorkPlan: which thread computes which part of an attention. It is made once for a batch, from the
// chunks that the mask makes visible to each row, and used by every layer of the same shape.
//
// A piece is a few rows of one stream and KV head over a range of chunks. Its cost counts the
// chunks that it reads, so that sequences of different lengths keep all threads equally busy. A
// piece that costs more than a quarter of a thread's share is split along the cache. The thread
// that finishes last merges the parts in the order of the cache: results do not depend on timing.
//
// Threads: make() by one thread; then all read it, and use splits as piece_result.cpp does.
// Errors:  std::bad_alloc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/attention/mask_chunks.h"

namespace slipstream::turbo {

// The rows * query heads per KV head that a piece may have. One row is never divided, however many
// heads it has.
inline constexpr std::int64_t kBlockQueries = 32;

struct PlanShape {
  std::int64_t n_rows;
  std::int64_t n_streams;
  std::int64_t n_heads;
  std::int64_t n_kv_heads;
  std::int64_t n_cells;
  bool operator==(const PlanShape&) const = default;
};
// REQUIRES: attention is a FLASH_ATTN_EXT.
PlanShape plan_shape(const ggml_tensor* attention);

struct Piece {
  std::int64_t stream;
  std::int64_t kv_head;
  std::int64_t first_row;
  std::int64_t n_rows;
  int first_chunk;
  int end_chunk;
  int split;  // its index in splits(), or -1: the piece is whole
  int part;   // its index within the split
};

// A piece cut into parts.
struct Split {
  int n_parts = 0;
  int first_slot = 0;  // part i keeps its result in slot first_slot + i
  int n_done = 0;      // changed atomically; back to 0 when the last part is done
};

class WorkPlan {
 public:
  // REQUIRES: n_threads > 0; n_heads is a multiple of n_kv_heads; the mask has been computed.
  void make(const ggml_tensor* mask, const PlanShape& shape, int n_threads);

  [[nodiscard]] const MaskChunks& mask_chunks() const { return mask_chunks_; }
  // REQUIRES: thread_idx < the n_threads of make().
  [[nodiscard]] std::span<const Piece> pieces_of(int thread_idx) const;
  [[nodiscard]] std::span<Split> splits() { return splits_; }
  [[nodiscard]] int n_slots() const { return n_slots_; }

 private:
  struct Block {  // rows of one stream; becomes a piece for every KV head
    std::int64_t stream;
    std::int64_t first_row;
    std::int64_t n_rows;
    int first_chunk;
    int end_chunk;
    std::int64_t cost;
  };
  void find_blocks(const PlanShape& shape);
  void assign(const PlanShape& shape, int n_threads);

  MaskChunks mask_chunks_;
  std::vector<Block> blocks_;
  std::vector<std::vector<Piece>> pieces_;  // by thread
  std::vector<Split> splits_;
  int n_slots_ = 0;
};

}  // namespace slipstream::turbo
