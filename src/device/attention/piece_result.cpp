#include "device/attention/piece_result.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "device/attention/chunk_kernels.h"
#include "device/codec/codec_kernels.h"

namespace slipstream::turbo {

void PieceResult::finish() {
  for (std::size_t q = 0; q < queries_.size(); ++q) {
    const float* sums = scratch_.weight_sums.row(q);
    *scratch_.total_weights.row(q) = std::reduce(sums, sums + kTileTokens);
  }
  if (context_.piece.split >= 0) {
    store_part();
    const std::atomic_ref n_done(split().n_done);
    if (n_done.fetch_add(1, std::memory_order_acq_rel) + 1 < split().n_parts) return;
    n_done.store(0, std::memory_order_relaxed);
    merge_parts();
  }
  for (std::size_t q = 0; q < queries_.size(); ++q) write(q);
}

void PieceResult::store_part() {
  const std::size_t n = queries_.size();
  float* part = slot(context_.piece.part);
  std::copy_n(scratch_.max.data(), n, part);
  std::copy_n(scratch_.total_weights.data(), n, part + n);
  std::copy_n(scratch_.outputs.data(), n * scratch_.outputs.stride(), part + 2 * n);
}

// Merges in the order of the cache, whichever thread finishes last.
void PieceResult::merge_parts() {
  const std::size_t n = queries_.size();
  const float* first = slot(0);
  std::copy_n(first, n, scratch_.max.data());
  std::copy_n(first + n, n, scratch_.total_weights.data());
  std::copy_n(first + 2 * n, n * scratch_.outputs.stride(), scratch_.outputs.data());
  for (int part = 1; part < split().n_parts; ++part) {
    for (std::size_t q = 0; q < n; ++q) merge(q, slot(part));
  }
}

void PieceResult::merge(std::size_t q, const float* part) {
  const std::size_t n = queries_.size();
  const std::size_t value_dim = scratch_.outputs.stride();
  const float part_max = part[q];
  if (part_max == -std::numeric_limits<float>::infinity()) return;
  raise_max(q, part_max);
  const float factor = std::exp2(part_max - *scratch_.max.row(q));
  *scratch_.total_weights.row(q) += part[n + q] * factor;
  float* output = scratch_.outputs.row(q);
  const float* part_output = part + 2 * n + q * value_dim;
  for (std::size_t c = 0; c < value_dim; ++c) output[c] += part_output[c] * factor;
}

void PieceResult::raise_max(std::size_t q, float max) {
  float& current = *scratch_.max.row(q);
  if (max <= current) return;
  const float factor = std::exp2(current - max);
  float* output = scratch_.outputs.row(q);
  for (std::size_t c = 0; c < scratch_.outputs.stride(); ++c) output[c] *= factor;
  *scratch_.total_weights.row(q) *= factor;
  current = max;
}

void PieceResult::write(std::size_t q) {
  const Query& query = queries_[q];
  const ggml_tensor* op = context_.task.op;
  float total = *scratch_.total_weights.row(q);
  if (const ggml_tensor* sinks = op->src[4]; sinks != nullptr) {
    // A sink has a weight but no value.
    const float sink = static_cast<const float*>(sinks->data)[query.head] * kLog2E;
    raise_max(q, sink);
    total = *scratch_.total_weights.row(q) + std::exp2(sink - *scratch_.max.row(q));
  }
  float factor = total > 0 ? 1 / total : 0;
  // Quantised queries cannot represent NaN or infinity, so the result is set to NaN here.
  if (!query.is_finite) factor = std::numeric_limits<float>::quiet_NaN();
  const std::span output(scratch_.outputs.row(q), scratch_.outputs.stride());
  for (float& value : output) value *= factor;
  const CacheSide& values = context_.coded.values;
  if (values.cache != nullptr) rotate_back_fast(values.cache->rotation(), output);
  std::memcpy(row_at<float>(op, query.head, query.row, context_.piece.stream), output.data(),
              output.size_bytes());
}

Split& PieceResult::split() const {
  return context_.task.plan->work().splits()[static_cast<std::size_t>(context_.piece.split)];
}

float* PieceResult::slot(int part) const {
  return context_.task.plan->slot(split().first_slot + part);
}

}  // namespace slipstream::turbo
