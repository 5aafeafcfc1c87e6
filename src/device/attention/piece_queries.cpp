#include "device/attention/piece_queries.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/attention/chunk_kernels.h"
#include "device/attention/query_kernels.h"
#include "device/codec/codec_kernels.h"
#include "device/codec/key_fit.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {
namespace {

// The slope of a head's linear bias (ALiBi); 1 without ALiBi.
float slope_of(float max_bias, std::int64_t head, std::int64_t n_heads) {
  if (max_bias <= 0) return 1;
  const auto n_log2 =
      static_cast<std::int64_t>(std::exp2(std::floor(std::log2(static_cast<double>(n_heads)))));
  const double m0 = std::exp2(-static_cast<double>(max_bias) / static_cast<double>(n_log2));
  const double m1 = std::exp2(-static_cast<double>(max_bias) / 2 / static_cast<double>(n_log2));
  return static_cast<float>(head < n_log2
                                ? std::pow(m0, static_cast<double>(head + 1))
                                : std::pow(m1, static_cast<double>(2 * (head - n_log2) + 1)));
}

// The chunk of the cell that a row of the batch was written into. own_cells lists the rows of one
// stream after the other.
int own_chunk_of(const PieceContext& context, std::int64_t row) {
  if (context.own_cells == nullptr) return Query::kUnknown;
  const std::int64_t n_rows = context.task.op->src[0]->ne[1];
  const std::int64_t cell = index_at(context.own_cells, context.piece.stream * n_rows + row);
  return static_cast<int>(cell % context.coded.keys.tensor->n_cells() / kChunkTokens);
}

}  // namespace

PieceQueries::PieceQueries(const PieceContext& context)
    : n_(context.n_queries), has_own_chunks_(context.own_cells != nullptr) {
  for (std::size_t q = 0; q < n_; ++q) prepare(context, q);
  if (context.coded.keys.cache != nullptr) quantise_all(context);
}

void PieceQueries::prepare(const PieceContext& context, std::size_t q) {
  const ggml_tensor* op = context.task.op;
  const ggml_tensor* mask = op->src[3];
  const Piece& piece = context.piece;
  const CacheSide& keys = context.coded.keys;
  const auto idx = static_cast<std::int64_t>(q);
  const std::int64_t row = piece.first_row + idx / context.group;
  const std::int64_t head = piece.kv_head * context.group + idx % context.group;

  const std::span vector(context.scratch.vectors.row(q), static_cast<std::size_t>(keys.head_dim));
  std::memcpy(vector.data(), row_at<const float>(op->src[0], row, head, piece.stream),
              vector.size_bytes());
  queries_[q] = {.row = row,
                 .head = head,
                 .mask = mask == nullptr
                             ? nullptr
                             : row_at<const std::uint16_t>(mask, row, head % mask->ne[2],
                                                           piece.stream % mask->ne[3]),
                 .visibility = context.task.plan->work().mask_chunks().row(row, head, piece.stream),
                 .own_chunk = own_chunk_of(context, row),
                 .is_finite = std::isfinite(peak_of(vector))};
  first_own_chunk_ = std::min(first_own_chunk_, queries_[q].own_chunk);
  last_own_chunk_ = std::max(last_own_chunk_, queries_[q].own_chunk);

  *context.scratch.slopes.row(q) = slope_of(params_of(op).max_bias, head, op->src[0]->ne[2]);
  *context.scratch.centre_scores.row(q) =
      keys.cache == nullptr ? 0 : dot_channels(vector, keys.cache->centre(piece.kv_head));
}

// Fitted codes are multiplied with queries in the fitted basis; rotated codes and the 8-bit copies
// of fitted keys with rotated queries.
void PieceQueries::quantise_all(const PieceContext& context) {
  PieceScratch& scratch = context.scratch;
  const CacheSide& keys = context.coded.keys;
  const auto key_dim = static_cast<std::size_t>(keys.head_dim);
  const std::span vectors(scratch.vectors.data(), n_ * key_dim);
  if (const KeyFit* fit = keys.fit(); fit != nullptr) {
    const std::span fitted(scratch.fitted_vectors.data(), vectors.size());
    fit->to_queries(context.piece.kv_head, vectors, fitted);
    for (std::size_t q = 0; q < n_; ++q) {
      quantise(keys, scratch.coded, q, fitted.subspan(q * key_dim, key_dim));
    }
    // Copies and signs are those of rotated keys.
    if (!has_own_chunks_ && keys.cache->signs() == nullptr) return;
  }
  QuantisedQueries& quantised = keys.fit() == nullptr ? scratch.coded : scratch.rotated;
  for (std::size_t q = 0; q < n_; ++q) {
    const std::span vector = vectors.subspan(q * key_dim, key_dim);
    rotate_fast(keys.cache->rotation(), vector);
    quantise(keys, quantised, q, vector);
  }
}

// Quantises a query to 8-bit digits, with zeroes behind the last channel.
void PieceQueries::quantise(const CacheSide& keys, QuantisedQueries& into, std::size_t q,
                            std::span<const float> vector) const {
  // Nothing is read of a query that is not finite: its result is NaN.
  const float peak = queries_[q].is_finite ? peak_of(vector) : 0;
  const bool two = keys.n_digits == 2;
  const float digits_max = two ? kQueryMax2 : kQueryMax1;
  *into.scales.row(q) = peak / digits_max;
  const float per_step = peak > 0 ? digits_max / peak : 0;
  const std::size_t n_digits = two ? 2 : 1;
  std::int8_t* high = into.digits.row(q * n_digits);
  std::int8_t* low = high + into.digits.stride();
  std::memset(high, 0, into.digits.stride() * n_digits);
  std::int32_t* offsets = into.offsets.row(q);
  std::fill_n(offsets, keys.n_parts, 0);
  if (peak == 0) return;
  const auto part_channels = static_cast<std::size_t>(keys.part_channels);
  for (std::size_t c = 0; c < vector.size(); c += part_channels, ++offsets) {
    const auto part = vector.subspan(c, std::min(part_channels, vector.size() - c));
    const std::int32_t sum = two ? quantise_digits(part, per_step, high + c, low + c)
                                 : quantise_digit(part, per_step, high + c);
    *offsets = -128 * sum;  // key bytes are level + 128
  }
}

}  // namespace slipstream::turbo
