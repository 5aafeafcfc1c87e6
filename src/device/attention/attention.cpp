#include "device/attention/attention.h"

#include <algorithm>
#include <array>
#include <utility>

#include "device/attention/amx.h"
#include "device/attention/cache_side.h"
#include "device/attention/chunk_choice.h"
#include "device/attention/chunk_pass.h"
#include "device/attention/kernel_choice.h"
#include "device/attention/piece_context.h"
#include "device/attention/piece_queries.h"
#include "device/attention/piece_result.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

AmxShape amx_shape(const AttentionTask& task) {
  const ggml_tensor* q = task.op->src[0];
  const std::int64_t group = q->ne[2] / task.op->src[1]->ne[2];
  const auto n_queries = static_cast<int>(std::min(q->ne[1] * group, kBlockQueries));
  const CacheSides sides(task.op, task.keys, task.values, false);
  return {.key_rows = std::min(kAmxRows, n_queries * sides.keys.n_digits),
          .key_part_channels = sides.keys.part_channels,
          .value_rows = std::min(kAmxRows, n_queries * sides.values.n_digits)};
}

// How many chunks a thread holds at once if they may lie in a file. They are read together.
constexpr std::size_t kHeldChunks = 128;

bool is_cold(CacheTensor* side) {
  return side->compressed() != nullptr && side->compressed()->is_cold();
}

// Brings chunks of both sides into memory and processes them, group after group. Keys are started
// and finished before values on all threads, so that none waits for another in a circle.
Result<void> process_held(const PieceContext& context, ChunkPass& pass) {
  const int end = context.piece.end_chunk;
  std::vector<int> chunks;
  for (int first = pass.next_seen(context.piece.first_chunk); first < end;) {
    chunks.clear();
    int next = first;
    for (; next < end && chunks.size() < kHeldChunks; next = pass.next_seen(next + 1)) {
      chunks.push_back(next);
    }
    std::array<ColdChunks::Held, 2> held;
    const std::array sides = {context.task.keys, context.task.values};
    for (std::size_t i = 0; i < sides.size(); ++i) {
      if (!is_cold(sides[i])) continue;
      Result<ColdChunks::Held> started = sides[i]->compressed()->start_reading(
          context.task.first_stream + context.piece.stream, context.piece.kv_head, chunks);
      if (!started) return std::unexpected(std::move(started.error()));
      held[i] = std::move(*started);
    }
    for (ColdChunks::Held& side : held) {
      if (Result<void> finished = side.finish(); !finished) return finished;
    }
    pass.process(first, next);
    first = next;
  }
  return {};
}

Result<void> run_piece(const AttentionTask& task, const Piece& piece) {
  const PieceContext context(task, piece, PieceScratch::of_thread());
  PieceQueries queries(context);
  choose_chunks(context, queries);
  ChunkPass pass(context, queries);
  if (is_cold(task.keys) || is_cold(task.values)) {
    if (Result<void> processed = process_held(context, pass); !processed) return processed;
  } else {
    pass.process(pass.next_seen(piece.first_chunk), piece.end_chunk);
  }
  PieceResult(context, queries).finish();
  return {};
}

}  // namespace

bool is_cache_view(const ggml_tensor* view, const CacheTensor& cache) {
  const std::size_t element = ggml_type_size(view->type);
  const std::size_t stream_bytes = cache.stream_bytes();
  const std::int64_t head_dim = view->ne[0];
  return view->type == GGML_TYPE_F16 && view->nb[0] == element &&
         view->nb[1] == cache.row_bytes() &&
         view->nb[2] == element * static_cast<std::size_t>(head_dim) &&
         (view->ne[3] == 1 || view->nb[3] == stream_bytes) &&
         head_dim * view->ne[2] == cache.n_channels() && view->ne[1] <= cache.n_cells() &&
         cache_offset(view) % stream_bytes == 0;
}

void SharedPlan::reset(const ggml_tensor* op) {
  mask_ = op->src[3];
  shape_ = plan_shape(op);
  value_dim_ = op->src[2]->ne[0];
}

bool SharedPlan::fits(const ggml_tensor* op) const {
  return mask_ == op->src[3] && shape_ == plan_shape(op) && value_dim_ == op->src[2]->ne[0];
}

void SharedPlan::make(int n_threads) {
  work_.make(mask_, shape_, n_threads);
  const std::int64_t group = shape_.n_heads / shape_.n_kv_heads;
  slot_floats_ = slot_floats(static_cast<std::size_t>(std::max(kBlockQueries, group)),
                             static_cast<std::size_t>(value_dim_));
  slots_.resize(static_cast<std::size_t>(work_.n_slots()) * slot_floats_);
}

Result<void> run_attention(const AttentionTask& task, int thread_idx) {
  const AmxScope tiles(use_amx(), amx_shape(task));
  for (const Piece& piece : task.plan->work().pieces_of(thread_idx)) {
    if (Result<void> done = run_piece(task, piece); !done) return done;
  }
  return {};
}

}  // namespace slipstream::turbo
