// Tiles: how many bytes the codes of keys and values take, and which heads can have codes.
//
// Codes lie in tiles of 16 tokens of one head. Attention goes through a cache in chunks of four
// tiles. Bytes: docs/formats/kv-tile.md.
//
// Threads: immutable. Errors: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace slipstream::turbo {

inline constexpr int kTileTokens = 16;
inline constexpr int kChunkTiles = 4;
inline constexpr int kChunkTokens = kChunkTiles * kTileTokens;

// Heads that can have codes: multiples of 16. Others stay f16.
inline constexpr int kHeadDimMin = 16;
inline constexpr int kHeadDimMax = 1024;
constexpr bool is_code_head(std::int64_t head_dim) {
  return head_dim >= kHeadDimMin && head_dim <= kHeadDimMax && head_dim % kHeadDimMin == 0;
}
// Query heads that may share a KV head.
inline constexpr std::int64_t kGroupMax = 256;

enum class Side { kKey, kValue };

// One plane of 1, 2, 4 or 8 bits: groups of 16 words, of which each has 32 / bits positions.
constexpr std::size_t plane_bytes(int plane_bits, int head_dim) {
  const int per_word = 32 / plane_bits;
  return static_cast<std::size_t>((head_dim + per_word - 1) / per_word) * 64;
}
// Three bits are a plane of the two low ones and a plane of the high one. 0 bits take nothing.
constexpr std::size_t tile_code_bytes(int bits, int head_dim) {
  if (bits == 0) return 0;
  return bits == 3 ? plane_bytes(2, head_dim) + plane_bytes(1, head_dim)
                   : plane_bytes(bits, head_dim);
}

// How many channels share a scale: all of a vector, but fewer at 8 bits, where the error is set by
// the largest number under a scale. Keys gain more by it than values.
constexpr int channels_per_scale(Side side, int bits, int head_dim) {
  if (bits != 8) return head_dim;
  return side == Side::kKey ? 32 : 64;
}
// The scales of a tile are f16, [scale][token].
constexpr int n_scales(Side side, int bits, int head_dim) {
  const int per_scale = channels_per_scale(side, bits, head_dim);
  return (head_dim + per_scale - 1) / per_scale;
}
constexpr std::size_t tile_scale_bytes(int n_scales) {
  return static_cast<std::size_t>(n_scales * kTileTokens) * sizeof(std::uint16_t);
}

constexpr std::int64_t n_tiles(std::int64_t n_cells) {
  return (n_cells + kTileTokens - 1) / kTileTokens;
}
constexpr std::int64_t n_chunks(std::int64_t n_cells) {
  return (n_cells + kChunkTokens - 1) / kChunkTokens;
}

// Codes of all cells of one head, then their scales, up to the end of a cache line.
constexpr std::size_t tiles_bytes(std::size_t code_bytes, int n_scales, std::int64_t n_cells) {
  constexpr std::size_t kLineBytes = 64;
  const auto n = static_cast<std::size_t>(n_tiles(n_cells));
  const std::size_t scales = n * tile_scale_bytes(n_scales);
  return n * code_bytes + (scales + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// The codes of all cells of one head.
constexpr std::size_t code_bytes(int bits, int head_dim, std::int64_t n_cells) {
  return static_cast<std::size_t>(n_tiles(n_cells)) * tile_code_bytes(bits, head_dim);
}

// How many chunks of a stream are kept in 8 bits beside their codes: the first, the last two that
// were written and the one that a prompt's next batch begins in, and one in 64 where the cache is
// large, for several sequences.
constexpr std::int64_t precise_slots(std::int64_t n_cells) {
  return std::min(n_chunks(n_cells), std::max<std::int64_t>(n_chunks(n_cells) / 64, 4));
}

// The signs of one head's keys lie in planes, each a byte for eight channels of every token. From
// one plane to the next is an odd number of cache lines, so that a token's bytes do not compete for
// the same places of the processor's caches.
constexpr int n_sign_planes(int head_dim) { return head_dim / 8; }
constexpr std::size_t sign_plane_bytes(std::int64_t n_cells) {
  return static_cast<std::size_t>(n_chunks(n_cells) | 1) * kChunkTokens;
}
// The planes of one head, and one more for scales, a byte each.
constexpr std::size_t sign_bytes(int head_dim, std::int64_t n_cells) {
  return static_cast<std::size_t>(n_sign_planes(head_dim) + 1) * sign_plane_bytes(n_cells);
}

// All that one head takes, with the chunks in 8 bits, which have one scale for a vector, and with
// signs, which keys have if the scheme limits what a query reads.
constexpr std::size_t head_bytes(Side side, int bits, int head_dim, std::int64_t n_cells,
                                 bool is_limited) {
  const std::size_t codes =
      tiles_bytes(tile_code_bytes(bits, head_dim), n_scales(side, bits, head_dim), n_cells);
  const std::size_t signs = is_limited && side == Side::kKey ? sign_bytes(head_dim, n_cells) : 0;
  if (bits == 8) return codes + signs;
  return codes + signs +
         tiles_bytes(tile_code_bytes(8, head_dim), 1, precise_slots(n_cells) * kChunkTokens);
}

}  // namespace slipstream::turbo
