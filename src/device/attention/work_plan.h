// WorkPlan: which thread computes which part of an attention. Made once for a batch, from the
// chunks that its mask makes visible to each row, and used by every layer of the same shape.
//
// A piece is a few rows of one stream and KV head over a range of chunks. The cost of a piece
// counts the chunks that it reads, so that sequences of different lengths keep all threads equally
// busy. A piece larger than a good part of a thread's share is split along the cache; the thread
// that ends last merges the parts, in the order of the cache, so that results do not depend on
// timing.
//
// Threads: make() by one thread; then read by all, splits as piece_result.cpp does.
// Errors:  std::bad_alloc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/attention/mask_chunks.h"

namespace slipstream::turbo {

// Rows * query heads per KV head of a piece. One row is never divided, whatever its heads.
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
  int split;  // index, or -1: the piece is whole
  int part;   // of the split
};

// A piece cut into parts.
struct Split {
  int n_parts = 0;
  int first_slot = 0;  // part i keeps its result in slot first_slot + i
  int n_done = 0;      // changed atomically; 0 again when the last has ended
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
  struct Block {  // rows of one stream; every KV head has a piece of it
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
