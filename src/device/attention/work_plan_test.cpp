// For every mask, each row and head reads each chunk that is visible to it exactly once, and no
// thread has much more work than another.
#include "device/attention/work_plan.h"

#include <ggml-cpp.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo {
namespace {

struct Batch {
  PlanShape shape;
  std::int64_t (*last_cell)(std::int64_t row, std::int64_t stream);  // cells up to it are visible
};

class Mask {
 public:
  explicit Mask(const Batch& batch)
      : context_(ggml_init(
            {.mem_size = std::size_t{64} << 20, .mem_buffer = nullptr, .no_alloc = false})) {
    const PlanShape& s = batch.shape;
    tensor_ =
        ggml_new_tensor_4d(context_.get(), GGML_TYPE_F16, s.n_cells, s.n_rows, 1, s.n_streams);
    auto* cells = static_cast<ggml_fp16_t*>(tensor_->data);
    for (std::int64_t i = 0; i < ggml_nelements(tensor_); ++i) {
      const std::int64_t row = i / s.n_cells % s.n_rows;
      const bool visible = i % s.n_cells <= batch.last_cell(row, i / s.n_cells / s.n_rows);
      cells[i] = ggml_fp32_to_fp16(visible ? 0.0F : -std::numeric_limits<float>::infinity());
    }
  }
  [[nodiscard]] const ggml_tensor* tensor() const { return tensor_; }

 private:
  ggml_context_ptr context_;
  ggml_tensor* tensor_ = nullptr;
};

const Batch kBatches[] = {
    // one token of one sequence; one KV head must be split to keep two threads busy
    {{.n_rows = 1, .n_streams = 1, .n_heads = 8, .n_kv_heads = 1, .n_cells = 4096},
     [](std::int64_t, std::int64_t) { return std::int64_t{4000}; }},
    // a prompt after a long prefix
    {{.n_rows = 100, .n_streams = 1, .n_heads = 16, .n_kv_heads = 8, .n_cells = 1024},
     [](std::int64_t row, std::int64_t) { return 900 + row; }},
    // sequences of very different lengths
    {{.n_rows = 1, .n_streams = 5, .n_heads = 4, .n_kv_heads = 2, .n_cells = 8192},
     [](std::int64_t, std::int64_t stream) { return (std::int64_t{64} << stream) * 8 - 1; }},
    // a row to which nothing is visible
    {{.n_rows = 3, .n_streams = 1, .n_heads = 2, .n_kv_heads = 2, .n_cells = 100},
     [](std::int64_t row, std::int64_t) { return row == 1 ? std::int64_t{-1} : std::int64_t{99}; }},
};

TEST(WorkPlan, CoversWhatIsVisibleExactlyOnce) {
  for (const Batch& batch : kBatches) {
    const Mask mask(batch);
    for (const int n_threads : {1, 2, 3, 16}) {
      WorkPlan plan;
      plan.make(mask.tensor(), batch.shape, n_threads);
      // (stream, head, row, chunk) -> how often
      std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, int>, int> n_reads;
      std::map<int, std::set<int>> parts;
      for (int thread = 0; thread < n_threads; ++thread) {
        for (const Piece& piece : plan.pieces_of(thread)) {
          if (piece.split >= 0) parts[piece.split].insert(piece.part);
          for (std::int64_t row = piece.first_row; row < piece.first_row + piece.n_rows; ++row) {
            for (int chunk = piece.first_chunk; chunk < piece.end_chunk; ++chunk) {
              ++n_reads[{piece.stream, piece.kv_head, row, chunk}];
            }
          }
        }
      }
      for (const auto& [place, n] : n_reads) EXPECT_EQ(n, 1);
      for (const auto& [split, found] : parts) {
        const Split& whole = plan.splits()[static_cast<std::size_t>(split)];
        EXPECT_EQ(found.size(), static_cast<std::size_t>(whole.n_parts));
        EXPECT_LE(whole.first_slot + whole.n_parts, plan.n_slots());
      }
      const PlanShape& s = batch.shape;
      for (std::int64_t stream = 0; stream < s.n_streams; ++stream) {
        for (std::int64_t row = 0; row < s.n_rows; ++row) {
          for (std::int64_t cell = 0; cell <= batch.last_cell(row, stream); cell += kChunkTokens) {
            for (std::int64_t head = 0; head < s.n_kv_heads; ++head) {
              EXPECT_TRUE(
                  n_reads.contains({stream, head, row, static_cast<int>(cell / kChunkTokens)}))
                  << "row " << row << " cell " << cell << " threads " << n_threads;
            }
          }
        }
      }
    }
  }
}

TEST(WorkPlan, SharesAreAlike) {
  for (const Batch& batch : {kBatches[0], kBatches[1], kBatches[2]}) {
    const Mask mask(batch);
    for (const int n_threads : {2, 3, 8}) {
      WorkPlan plan;
      plan.make(mask.tensor(), batch.shape, n_threads);
      std::int64_t total = 0;
      std::int64_t largest = 0;
      for (int thread = 0; thread < n_threads; ++thread) {
        std::int64_t cost = 0;
        for (const Piece& piece : plan.pieces_of(thread)) {
          cost += (piece.end_chunk - piece.first_chunk) * (4 + 2 * piece.n_rows);
        }
        total += cost;
        largest = std::max(largest, cost);
      }
      EXPECT_LT(largest * n_threads, total * 13 / 10) << n_threads << " threads";
    }
  }
}

}  // namespace
}  // namespace slipstream::turbo
