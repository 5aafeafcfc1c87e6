// TileLayout: where the code of each (token, channel) of 16 tokens of one head lies.
//
// A tile has 16 slots and `head_dim` positions. A vector register of 16 words holds one word per
// slot, and attention reduces over positions, four at a time:
//   keys:   slot = token,         position = channel             (score of a token: sum over
//   channels) values: slot = channel % 16,  position = channel / 16 * 16 + token  (sum over tokens)
// so that values are keys with each 16 x 16 block transposed. Bytes: docs/formats/kv-tile.md.
//
// Two tokens share bytes of a value tile, so one thread writes a tile at a time.
//
// Threads: immutable. Errors: none; the constructor checks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace slipstream::turbo {

inline constexpr int kTileTokens = 16;
// Attention goes through a cache chunk by chunk.
inline constexpr int kChunkTiles = 4;
inline constexpr int kChunkTokens = kChunkTiles * kTileTokens;

enum class Side { kKey, kValue };

struct TilePlace {
  int slot;
  int position;
};
constexpr TilePlace place_in_tile(Side side, int token, int channel) {
  if (side == Side::kKey) return {.slot = token, .position = channel};
  return {.slot = channel % kTileTokens, .position = channel / kTileTokens * kTileTokens + token};
}

// Bytes of one plane of 1, 2, 4 or 8 bits: what a tile of head_dim positions takes.
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

// Channels next to each other whose codes have one width. A multiple of 8 of them.
struct ChannelClass {
  int bits;
  int n_channels;
};
// The classes of a vector. Their tiles follow each other and together are the vector's tile.
struct ChannelClasses {
  std::array<ChannelClass, 3> all{};
  int n = 0;
  [[nodiscard]] constexpr const ChannelClass* begin() const { return all.data(); }
  [[nodiscard]] constexpr const ChannelClass* end() const { return all.data() + n; }
};
// All channels alike.
constexpr ChannelClasses one_class(int bits, int head_dim) {
  return {.all = {{{bits, head_dim}}}, .n = 1};
}
constexpr std::size_t tile_code_bytes(const ChannelClasses& classes) {
  std::size_t n_bytes = 0;
  for (const ChannelClass& one : classes) n_bytes += tile_code_bytes(one.bits, one.n_channels);
  return n_bytes;
}

class TileLayout {
 public:
  // bits: 2, 3, 4 or 8. head_dim: a multiple of 16. Only keys have more than one class.
  TileLayout(Side side, int bits, int head_dim) : TileLayout(side, one_class(bits, head_dim)) {}
  TileLayout(Side side, const ChannelClasses& classes);

  [[nodiscard]] std::size_t code_bytes() const { return code_bytes_; }  // a multiple of 64
  [[nodiscard]] Side side() const { return side_; }
  [[nodiscard]] const ChannelClasses& classes() const { return classes_; }
  [[nodiscard]] int head_dim() const { return head_dim_; }

  // Codes of one token, one per byte.
  void put(std::span<std::uint8_t> tile, int token, std::span<const std::uint8_t> codes) const;
  void get(std::span<const std::uint8_t> tile, int token, std::span<std::uint8_t> codes) const;

  // One token alone, keys and values alike: the words that a key's slot holds, one after the other.
  [[nodiscard]] std::size_t token_bytes() const { return code_bytes_ / kTileTokens; }
  void take(std::span<const std::uint8_t> tile, int token, std::span<std::uint8_t> packed) const;
  void place(std::span<std::uint8_t> tile, int token, std::span<const std::uint8_t> packed) const;

 private:
  Side side_;
  ChannelClasses classes_;
  int head_dim_ = 0;
  std::size_t code_bytes_;
};

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

// How many chunks of a stream are kept in 8 bits beside their codes: the first, the last two that
// were written and the one that a prompt's next batch begins in, and one in 64 where the cache is
// large, for several sequences.
constexpr std::int64_t precise_slots(std::int64_t n_cells) {
  const std::int64_t n_chunks = (n_cells + kChunkTokens - 1) / kChunkTokens;
  return std::min(n_chunks, std::max<std::int64_t>(n_chunks / 64, 4));
}

}  // namespace slipstream::turbo
