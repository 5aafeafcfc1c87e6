// CacheSide: the keys or the values of one layer, as the kernels of attention want them: where a
// chunk's codes and scales lie, or its plain rows.
//
// Threads: reading is thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/attention/chunk_kernels.h"
#include "device/kv_buffer/cache_tensor.h"

namespace slipstream::turbo {

// 64 tokens of one head of one stream.
struct Chunk {
  std::int64_t stream;
  std::int64_t head;
  int idx;
  int n_tokens;
  [[nodiscard]] int n_tiles() const { return (n_tokens + kTileTokens - 1) / kTileTokens; }
};

// One side of the cache of one layer, as the kernels want it: its codes, or those of its chunks
// that are kept in 8 bits (where the codes have 8 themselves, or the rows are plain, that is the
// same).
struct CacheSide {
  CacheTensor* tensor;
  const CompressedCache* cache;  // null: plain f16 rows
  int head_dim;
  bool is_precise;
  int bits = 0;
  int n_parts = 1;  // of a vector, with a scale each
  int part_channels = 0;
  int n_digits = 1;  // of what codes are multiplied with
  KeyCodes key_form;

  CacheSide(CacheTensor* side, int dim, bool precise)
      : tensor(side),
        cache(side->compressed()),
        head_dim(dim),
        is_precise(precise && cache != nullptr && cache->has_precise()) {
    if (cache == nullptr) return;
    bits = is_precise ? 8 : cache->shape().bits;
    // Copies have the parts and digits of the codes that they are of: one.
    n_parts = cache->shape().n_scales();
    part_channels = cache->shape().channels_per_scale();
    n_digits = cache->shape().bits == 8 ? 2 : 1;
    key_form =
        KeyCodes(is_precise ? one_class(8, head_dim) : cache->layout().classes(), fit() != nullptr);
  }

  [[nodiscard]] bool has(std::int64_t stream, int chunk) const {
    return !is_precise || cache->precise(stream, chunk).tiles != nullptr;
  }

  // What keys are coded with beside their levels; null: they are rotated.
  [[nodiscard]] const KeyFit* fit() const { return is_precise ? nullptr : cache->fit(); }
  [[nodiscard]] int channels_of_part(int part) const {
    return std::min(part_channels, head_dim - part * part_channels);
  }
  [[nodiscard]] const std::uint8_t* codes(const Chunk& chunk) const {
    if (!is_precise) {
      return cache->codes(chunk.stream, chunk.head, std::int64_t{kChunkTiles} * chunk.idx).data();
    }
    const auto [tiles, idx] = cache->precise(chunk.stream, chunk.idx);
    return tiles->codes(0, chunk.head, kChunkTiles * idx).data();
  }
  [[nodiscard]] const std::uint16_t* scales(const Chunk& chunk) const {
    if (!is_precise) {
      return cache->scales(chunk.stream, chunk.head, std::int64_t{kChunkTiles} * chunk.idx).data();
    }
    const auto [tiles, idx] = cache->precise(chunk.stream, chunk.idx);
    return tiles->scales(0, chunk.head, kChunkTiles * idx).data();
  }
  [[nodiscard]] const std::uint16_t* plain_rows(const Chunk& chunk) const {
    const std::int64_t row =
        chunk.stream * tensor->n_cells() + static_cast<std::int64_t>(chunk.idx) * kChunkTokens;
    return reinterpret_cast<const std::uint16_t*>(tensor->plain() + static_cast<std::size_t>(row) *
                                                                        tensor->row_bytes()) +
           chunk.head * head_dim;
  }
  [[nodiscard]] std::size_t plain_stride() const {
    return tensor->row_bytes() / sizeof(std::uint16_t);
  }
};

}  // namespace slipstream::turbo
