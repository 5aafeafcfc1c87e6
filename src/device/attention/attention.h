// Attention on the cache: computes ggml's FLASH_ATTN_EXT for keys and values that are tiles of
// codes or plain f16 rows. A thread computes its pieces of the plan (work_plan.h) one by one:
//
//   PieceContext   sides of the cache, scratch memory       piece_context.h, piece_scratch.h
//   PieceQueries   rotates and quantises the queries        piece_queries.h
//   choose_chunks  what is read if it is limited           chunk_choice.h
//   hold           brings it into memory, if it is in a file cold_pieces.h
//   ChunkPass      scores, softmax, weighted sum of values  chunk_pass.h, chunk_kernels.h
//   PieceResult    merges parts, normalises, writes         piece_result.h
//
// Threads: one thread calls SharedPlan::make(); then every thread that computes the graph calls
//          run_attention() with its own index. Tasks that share a plan run one after the other.
// Errors:  std::bad_alloc; kIo if codes may lie in a file. is_cache_view() tells beforehand what cannot be computed.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <vector>

#include "device/attention/work_plan.h"
#include "device/kv_buffer/cache_tensor.h"

namespace slipstream::turbo {

// The plan shared by all attentions of a batch with the same mask and shape.
class SharedPlan {
 public:
  // Makes this the plan of an op; keeps the memory used for the previous op.
  void reset(const ggml_tensor* op);
  [[nodiscard]] bool fits(const ggml_tensor* op) const;
  // Divides the work among threads.
  // REQUIRES: reset(); the mask has been computed; n_threads > 0.
  void make(int n_threads);

  [[nodiscard]] WorkPlan& work() { return work_; }
  // The memory in which a part of a split stores its result (piece_result.h).
  // REQUIRES: idx < work().n_slots().
  [[nodiscard]] float* slot(int idx) {
    return slots_.data() + static_cast<std::size_t>(idx) * slot_floats_;
  }

 private:
  const ggml_tensor* mask_ = nullptr;
  PlanShape shape_{};
  std::int64_t value_dim_ = 0;
  WorkPlan work_;
  std::vector<float> slots_;
  std::size_t slot_floats_ = 0;
};

struct AttentionTask {
  const ggml_tensor* op;  // FLASH_ATTN_EXT; its result is written
  CacheTensor* keys;
  CacheTensor* values;
  std::int64_t first_stream;  // the first of the cache's streams that the op reads
  SharedPlan* plan;
  // The cells that the batch's own rows were written into, in the order of the queries, as SET_ROWS
  // has them. Null: this graph does not write them, so no 8-bit copies are read (precise_chunks.h).
  const ggml_tensor* own_cells = nullptr;
};

// Whether the op's view of keys or values has the form that libllama's graphs use and that
// attention on tiles needs: [head_dim, cells, heads, streams] of a cache's rows.
[[nodiscard]] bool is_cache_view(const ggml_tensor* view, const CacheTensor& cache);

// REQUIRES: the plan fits the op and has been made, for more than thread_idx threads; keys and
// values are bound, and the op's views of them are cache views; at most kGroupMax query heads share
// a KV head.
[[nodiscard]] Result<void> run_attention(const AttentionTask& task, int thread_idx);

}  // namespace slipstream::turbo
