// PieceContext: the data that the steps of one piece of attention share (piece_queries.h,
// chunk_pass.h, piece_result.h), and how they read the op, ggml's FLASH_ATTN_EXT.
//
// Threads: one owner; threads share what task and piece refer to. Errors: std::bad_alloc.
#pragma once

#include <ggml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/attention/attention.h"
#include "device/attention/cache_side.h"
#include "device/attention/piece_scratch.h"
#include "device/attention/work_plan.h"

namespace slipstream::turbo {

// The largest number of queries in a piece: rows * query heads per KV head.
inline constexpr std::size_t kQueriesMax = std::max(kBlockQueries, kGroupMax);

struct AttentionParams {
  float scale;
  float max_bias;
  float softcap;
};

inline AttentionParams params_of(const ggml_tensor* op) {
  AttentionParams params{};
  std::memcpy(&params, op->op_params, sizeof(params));
  // ggml computes softcap * tanh(score * scale / softcap).
  if (params.softcap != 0) params.scale /= params.softcap;
  return params;
}

template <typename T>
T* row_at(const ggml_tensor* tensor, std::int64_t i1, std::int64_t i2, std::int64_t i3) {
  return reinterpret_cast<T*>(
      static_cast<char*>(tensor->data) + static_cast<std::size_t>(i1) * tensor->nb[1] +
      static_cast<std::size_t>(i2) * tensor->nb[2] + static_cast<std::size_t>(i3) * tensor->nb[3]);
}

struct PieceContext {
  // REQUIRES: the task's plan has been made, and the piece belongs to it.
  PieceContext(const AttentionTask& its_task, const Piece& its_piece, PieceScratch& its_scratch)
      : task(its_task),
        piece(its_piece),
        coded(its_task.op, its_task.keys, its_task.values, false),
        precise(its_task.op, its_task.keys, its_task.values, true),
        own_cells(precise.keys.is_precise || precise.values.is_precise ? its_task.own_cells
                                                                       : nullptr),
        scratch(its_scratch),
        group(its_task.op->src[0]->ne[2] / its_task.op->src[1]->ne[2]),
        n_queries(static_cast<std::size_t>(its_piece.n_rows * group)) {
    scratch.resize(coded, n_queries);
  }

  [[nodiscard]] Chunk chunk(int idx) const {
    const std::int64_t n_behind = task.op->src[1]->ne[1] - std::int64_t{idx} * kChunkTokens;
    return {.stream = task.first_stream + piece.stream,
            .head = piece.kv_head,
            .idx = idx,
            .n_tokens = static_cast<int>(std::min<std::int64_t>(kChunkTokens, n_behind))};
  }

  const AttentionTask& task;
  const Piece& piece;
  CacheSides coded;
  CacheSides precise;            // the 8-bit copies, if there are any
  const ggml_tensor* own_cells;  // those of the task; null: no 8-bit copies are read
  PieceScratch& scratch;
  std::int64_t group;  // query heads per KV head
  std::size_t n_queries;
};

}  // namespace slipstream::turbo
