#include "device/attention/piece_scratch.h"

#include <algorithm>
#include <array>

#include "device/attention/amx.h"
#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo {
namespace {

// AMX reads rows of queries 64 bytes at a time.
constexpr std::size_t kDigitAlignment = 64;

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

void QuantisedQueries::resize(const CacheSide& keys, std::size_t n_queries) {
  digits.resize(n_queries * 2 + kAmxRows,
                round_up(static_cast<std::size_t>(keys.head_dim), kDigitAlignment));
  offsets.resize(n_queries, static_cast<std::size_t>(keys.n_parts));
  scales.resize(n_queries);
}

PieceScratch& PieceScratch::of_thread(std::size_t idx) {
  thread_local std::array<PieceScratch, 2> scratches;
  return scratches.at(idx);
}

void PieceScratch::resize(const CacheSides& sides, std::size_t n_queries) {
  const auto& [keys, values] = sides;
  const auto key_dim = static_cast<std::size_t>(keys.head_dim);
  const auto value_dim = static_cast<std::size_t>(values.head_dim);
  const auto n_key_parts = static_cast<std::size_t>(keys.n_parts);
  const auto n_value_parts = static_cast<std::size_t>(values.n_parts);
  const std::size_t n_rows = round_up(n_queries, kAmxRows);
  const std::size_t stride_of_parts = round_up(n_queries * 2, kAmxRows) * kChunkTokens;

  vectors.resize(n_rows, key_dim);
  centre_scores.resize(n_queries);
  slopes.resize(n_queries);
  if (keys.cache != nullptr) {
    coded.resize(keys, n_queries);
    if (keys.fit() != nullptr) {
      fitted_vectors.resize(n_queries, key_dim);
      rotated.resize(keys, n_queries);
    }
    key_bytes.resize(1, expanded_bytes(keys.head_dim) + kReadPast);
    key_scales.resize(kChunkTiles, kTileTokens * n_key_parts);
  }
  if (values.cache != nullptr) {
    value_bytes.resize(value_dim / kTileTokens, std::size_t{kTileTokens} * kChunkTokens);
    value_scales.resize(kChunkTiles, kTileTokens * n_value_parts);
  }
  bias.resize(n_rows, kChunkTokens);
  scores.resize(n_rows, kChunkTokens);
  products.resize(std::max(n_key_parts, round_up(value_dim, kChunkTokens) / kChunkTokens),
                  stride_of_parts);
  weights.resize(n_value_parts, stride_of_parts);
  weight_scales.resize(n_value_parts, n_queries);
  rescale.resize(n_queries);

  max.resize(n_queries);
  weight_sums.resize(n_rows, kTileTokens);
  total_weights.resize(n_queries);
  outputs.resize(n_rows, value_dim);
}

}  // namespace slipstream::turbo
