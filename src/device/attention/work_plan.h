// WorkPlan: which thread does which part of an attention. Made once for a batch, from what its mask
// lets each row see, and used by every layer of the same shape.
//
// A piece is a few rows of one stream and KV head over a range of chunks. Pieces are dealt by the
// chunks they really look at, so that sequences of different lengths keep all threads busy alike. A
// piece larger than a good part of a thread's share is split along the cache; the thread that ends
// last puts its parts together, in the order of the cache, so that results do not depend on timing.
//
// Threads: make() by one thread; then read by all, splits as attention.cpp does.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/attention/mask_chunks.h"

namespace slipstream::turbo {

inline constexpr std::int64_t kBlockQueries = 32;  // rows * heads of a group that share a piece

struct PlanShape {
  std::int64_t n_rows;
  std::int64_t n_streams;
  std::int64_t n_heads;
  std::int64_t n_kv_heads;
  std::int64_t n_cells;
  bool operator==(const PlanShape&) const = default;
};
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
  int n_done = 0;      // atomically; 0 again when the last has ended
};

class WorkPlan {
 public:
  void make(const ggml_tensor* mask, const PlanShape& shape, int n_threads);

  [[nodiscard]] const MaskChunks& mask_chunks() const { return mask_chunks_; }
  [[nodiscard]] std::span<const Piece> pieces_of(int thread_idx) const;
  [[nodiscard]] std::span<Split> splits() { return splits_; }
  [[nodiscard]] int n_slots() const { return n_slots_; }

 private:
  struct Block {  // rows of one stream; every KV head does the same with it
    std::int64_t stream;
    std::int64_t first_row;
    std::int64_t n_rows;
    int first_chunk;
    int end_chunk;
    std::int64_t cost;
  };
  void find_blocks(const PlanShape& shape);
  void deal(const PlanShape& shape, int n_threads);

  MaskChunks mask_chunks_;
  std::vector<Block> blocks_;
  std::vector<std::vector<Piece>> pieces_;  // by thread
  std::vector<Split> splits_;
  int n_slots_ = 0;
};

}  // namespace slipstream::turbo
