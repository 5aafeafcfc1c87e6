#include "device/attention/work_plan.h"

#include <algorithm>

namespace slipstream::turbo {
namespace {

// Reading and expanding a chunk costs as much as computing this many queries on it.
constexpr std::int64_t kChunkCost = 4;

}  // namespace

PlanShape plan_shape(const ggml_tensor* attention) {
  const ggml_tensor* q = attention->src[0];
  const ggml_tensor* k = attention->src[1];
  return {.n_rows = q->ne[1],
          .n_streams = q->ne[3],
          .n_heads = q->ne[2],
          .n_kv_heads = k->ne[2],
          .n_cells = k->ne[1]};
}

void WorkPlan::make(const ggml_tensor* mask, const PlanShape& shape, int n_threads) {
  mask_chunks_.make(mask, shape.n_cells, shape.n_rows);
  find_blocks(shape);
  assign(shape, n_threads);
}

std::span<const Piece> WorkPlan::pieces_of(int thread_idx) const {
  return pieces_[static_cast<std::size_t>(thread_idx)];
}

void WorkPlan::find_blocks(const PlanShape& shape) {
  const std::int64_t group = shape.n_heads / shape.n_kv_heads;
  const std::int64_t rows_per_block = std::max<std::int64_t>(1, kBlockQueries / group);
  blocks_.clear();
  for (std::int64_t stream = 0; stream < shape.n_streams; ++stream) {
    for (std::int64_t first = 0; first < shape.n_rows; first += rows_per_block) {
      Block block{.stream = stream,
                  .first_row = first,
                  .n_rows = std::min(rows_per_block, shape.n_rows - first),
                  .first_chunk = mask_chunks_.n_chunks(),
                  .end_chunk = 0,
                  .cost = 1};
      for (int chunk = 0; chunk < mask_chunks_.n_chunks(); ++chunk) {
        std::int64_t n_visible_rows = 0;
        for (std::int64_t row = first; row < first + block.n_rows; ++row) {
          // Only the first head of a mask with several is counted, so the cost is then an estimate.
          n_visible_rows += mask_chunks_.row(row, 0, stream)[chunk] == Visibility::kNone ? 0 : 1;
        }
        if (n_visible_rows == 0) continue;
        block.first_chunk = std::min(block.first_chunk, chunk);
        block.end_chunk = chunk + 1;
        block.cost += kChunkCost + n_visible_rows * group;
      }
      if (mask_chunks_.n_heads() > 1 || block.end_chunk == 0) {
        block.first_chunk = 0;
        block.end_chunk = mask_chunks_.n_chunks();
      }
      blocks_.push_back(block);
    }
  }
}

void WorkPlan::assign(const PlanShape& shape, int n_threads) {
  pieces_.resize(static_cast<std::size_t>(n_threads));
  for (std::vector<Piece>& pieces : pieces_) pieces.clear();
  splits_.clear();
  n_slots_ = 0;
  std::int64_t total = 0;
  for (const Block& block : blocks_) total += block.cost * shape.n_kv_heads;
  const std::int64_t worth_splitting = total / n_threads / 4;
  const auto share_end = [&](int thread) { return total * (thread + 1) / n_threads; };

  std::int64_t start = 0;
  const auto assign_block = [&](const Block& block, std::int64_t kv_head) {
    Piece piece{.stream = block.stream,
                .kv_head = kv_head,
                .first_row = block.first_row,
                .n_rows = block.n_rows,
                .first_chunk = block.first_chunk,
                .end_chunk = block.end_chunk,
                .split = -1,
                .part = 0};
    const std::int64_t middle = start + block.cost / 2;
    int thread = 0;
    if (n_threads == 1 || block.cost <= worth_splitting) {
      while (thread + 1 < n_threads && share_end(thread) <= middle) ++thread;
      pieces_[static_cast<std::size_t>(thread)].push_back(piece);
      return;
    }
    while (share_end(thread) <= start) ++thread;
    Split split{.n_parts = 0, .first_slot = n_slots_, .n_done = 0};
    const std::int64_t n_chunks = block.end_chunk - block.first_chunk;
    for (int chunk = block.first_chunk; chunk < block.end_chunk; ++thread) {
      const std::int64_t end = std::min(share_end(thread) - start, block.cost);
      piece.first_chunk = chunk;
      piece.end_chunk = end == block.cost
                            ? block.end_chunk
                            : block.first_chunk + static_cast<int>(n_chunks * end / block.cost);
      if (piece.end_chunk == piece.first_chunk) continue;
      chunk = piece.end_chunk;
      piece.split = static_cast<int>(splits_.size());
      piece.part = split.n_parts++;
      pieces_[static_cast<std::size_t>(thread)].push_back(piece);
    }
    if (split.n_parts == 1) {
      pieces_[static_cast<std::size_t>(thread - 1)].back().split = -1;
      return;
    }
    n_slots_ += split.n_parts;
    splits_.push_back(split);
  };

  // Heads are the outer loop, so that the blocks of a prompt find the chunks of their head in the
  // processor's cache.
  for (std::size_t first = 0; first < blocks_.size();) {
    std::size_t end = first;
    while (end < blocks_.size() && blocks_[end].stream == blocks_[first].stream) ++end;
    for (std::int64_t kv_head = 0; kv_head < shape.n_kv_heads; ++kv_head) {
      for (std::size_t i = first; i < end; ++i) {
        assign_block(blocks_[i], kv_head);
        start += blocks_[i].cost;
      }
    }
    first = end;
  }
}

}  // namespace slipstream::turbo
