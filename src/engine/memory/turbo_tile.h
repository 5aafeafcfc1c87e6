// How large our plugin's tiles are: docs/formats/kv-tile.md in numbers. A contract test compares
// with the plugin's own (src/device/codec/tile.h), which this room may not include.
//
// Threads: immutable. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace slipstream {

enum class KvSide { kKey, kValue };

inline constexpr std::int64_t kTurboTileTokens = 16;

// What the plugin can compress; other heads stay f16.
constexpr bool is_turbo_head(std::int64_t head_dim) {
  constexpr std::int64_t kHeadDimMax = 1024;
  return head_dim > 0 && head_dim % 16 == 0 && head_dim <= kHeadDimMax;
}

// A plane of 1, 2, 4 or 8 bits: groups of 16 words, of which each has 32 / bits positions.
constexpr std::int64_t turbo_plane_bytes(int plane_bits, std::int64_t head_dim) {
  const std::int64_t per_word = 32 / plane_bits;
  return (head_dim + per_word - 1) / per_word * 64;
}

constexpr std::int64_t turbo_code_bytes(int bits, std::int64_t head_dim) {
  return bits == 3 ? turbo_plane_bytes(2, head_dim) + turbo_plane_bytes(1, head_dim)
                   : turbo_plane_bytes(bits, head_dim);
}

// f16, one per vector; at 8 bits one per 32 channels of keys and 64 of values.
constexpr std::int64_t turbo_scale_bytes(KvSide side, int bits, std::int64_t head_dim) {
  const std::int64_t per_scale = bits != 8 ? head_dim : side == KvSide::kKey ? 32 : 64;
  return (head_dim + per_scale - 1) / per_scale * kTurboTileTokens * 2;
}

// Codes and scales of one head for so many cells.
constexpr std::int64_t turbo_tiles_bytes(std::int64_t code_bytes, std::int64_t scale_bytes,
                                         std::int64_t n_cells) {
  constexpr std::int64_t kLineBytes = 64;
  const std::int64_t n_tiles = (n_cells + kTurboTileTokens - 1) / kTurboTileTokens;
  return n_tiles * code_bytes + (n_tiles * scale_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Cells that are kept in 8 bits beside their codes: the first ones, and the last of each sequence.
constexpr std::int64_t turbo_precise_cells(std::int64_t n_cells) {
  constexpr std::int64_t kChunkTokens = 64;
  const std::int64_t n_chunks = (n_cells + kChunkTokens - 1) / kChunkTokens;
  return std::min(n_chunks, std::max<std::int64_t>(n_chunks / 64, 4)) * kChunkTokens;
}

// All that one head takes.
constexpr std::int64_t turbo_head_bytes(KvSide side, int bits, std::int64_t head_dim,
                                        std::int64_t n_cells) {
  const std::int64_t scale_bytes = turbo_scale_bytes(side, bits, head_dim);
  const std::int64_t codes =
      turbo_tiles_bytes(turbo_code_bytes(bits, head_dim), scale_bytes, n_cells);
  if (bits == 8) return codes;
  return codes + turbo_tiles_bytes(turbo_code_bytes(8, head_dim), scale_bytes,
                                   turbo_precise_cells(n_cells));
}

}  // namespace slipstream
