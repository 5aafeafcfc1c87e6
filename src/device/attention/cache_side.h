// CacheSide: the keys or the values of one layer as the attention kernels read them. It tells where
// the codes and scales of a chunk lie, or its plain rows.
//
// Threads: reading is thread-safe. Errors: none.
#pragma once

#include <ggml.h>

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

// Describes the codes or, if is_precise, the 8-bit copies that some chunks have as well. 8-bit
// codes and plain rows have no copies: they are read directly in both cases.
struct CacheSide {
  CacheTensor* tensor;
  const CompressedCache* cache;  // null: plain f16 rows
  int head_dim;
  bool is_precise;
  int bits = 0;
  int n_parts = 1;  // parts of a vector, each with its own scale
  int part_channels = 0;
  int n_digits = 1;  // of the queries or weights that codes are multiplied with
  KeyCodes key_form;

  CacheSide(CacheTensor* side, int dim, bool precise)
      : tensor(side),
        cache(side->compressed()),
        head_dim(dim),
        is_precise(precise && cache != nullptr && cache->has_precise()) {
    if (cache == nullptr) return;
    bits = is_precise ? 8 : cache->shape().bits;
    // An 8-bit copy has as many parts and digits as the codes that it is a copy of: one.
    n_parts = cache->shape().n_scales();
    part_channels = cache->shape().channels_per_scale();
    n_digits = cache->shape().bits == 8 ? 2 : 1;
    key_form =
        KeyCodes(is_precise ? one_class(8, head_dim) : cache->layout().classes(), fit() != nullptr);
  }

  // Whether the chunk can be read from this side: false if it has no 8-bit copy.
  [[nodiscard]] bool has(std::int64_t stream, int chunk) const {
    return !is_precise || cache->precise(stream, chunk).tiles != nullptr;
  }

  // The fitted basis that keys are coded in; null: they are coded after a rotation.
  // REQUIRES: cache != nullptr.
  [[nodiscard]] const KeyFit* fit() const { return is_precise ? nullptr : cache->fit(); }
  [[nodiscard]] int channels_of_part(int part) const {
    return std::min(part_channels, head_dim - part * part_channels);
  }
  // The codes and scales of the chunk's first tile; those of its other tiles follow.
  // REQUIRES: cache != nullptr; has(chunk.stream, chunk.idx).
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
  // f16 rows of one head, plain_stride() apart.
  // REQUIRES: cache == nullptr.
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

struct CacheSides {
  CacheSide keys;
  CacheSide values;
  // REQUIRES: op is a FLASH_ATTN_EXT that reads these tensors, and both are bound.
  CacheSides(const ggml_tensor* op, CacheTensor* key_tensor, CacheTensor* value_tensor,
             bool precise)
      : keys(key_tensor, static_cast<int>(op->src[0]->ne[0]), precise),
        values(value_tensor, static_cast<int>(op->src[2]->ne[0]), precise) {}
};

}  // namespace slipstream::turbo
