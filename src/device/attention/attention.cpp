#include "device/attention/attention.h"

#include <algorithm>
#include <utility>

#include "device/attention/amx.h"
#include "device/attention/cache_side.h"
#include "device/attention/chunk_choice.h"
#include "device/attention/chunk_pass.h"
#include "device/attention/cold_pieces.h"
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

void run_piece(const AttentionTask& task, const Piece& piece) {
  const PieceContext context(task, piece, PieceScratch::of_thread());
  PieceQueries queries(context);
  choose_chunks(context, queries);
  ChunkPass pass(context, queries);
  pass.process(pass.next_seen(piece.first_chunk), piece.end_chunk);
  PieceResult(context, queries).finish();
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
  const std::span<const Piece> pieces = task.plan->work().pieces_of(thread_idx);
  if (has_cold_codes(task)) return run_cold_pieces(task, pieces);
  for (const Piece& piece : pieces) run_piece(task, piece);
  return {};
}

}  // namespace slipstream::turbo
