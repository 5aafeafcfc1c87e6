// TileLayout: where the code of each (token, channel) of 16 tokens of one head lies.
//
// A tile has 16 slots and `head_dim` positions. A vector register of 16 words holds one word per
// slot, and attention sums over positions, four at a time: over channels for the score of a token,
// over tokens for an output channel.
//   keys:    slot = token,         position = channel
//   values:  slot = channel % 16,  position = channel / 16 * 16 + token
// So a value tile is a key tile with each 16 x 16 block transposed. Bytes: docs/formats/kv-tile.md.
//
// Threads: immutable. One thread at a time writes a tile: two tokens of a value tile share bytes.
// Errors:  none; the constructor checks its arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "contract/tile.h"

namespace slipstream::turbo {

struct TilePlace {
  int slot;
  int position;
};
constexpr TilePlace place_in_tile(Side side, int token, int channel) {
  if (side == Side::kKey) return {.slot = token, .position = channel};
  return {.slot = channel % kTileTokens, .position = channel / kTileTokens * kTileTokens + token};
}

// Consecutive channels whose codes have the same width. Their number is a multiple of 8.
struct ChannelClass {
  int bits;
  int n_channels;
};
// The classes of a vector. Their tiles follow each other and together form the vector's tile.
struct ChannelClasses {
  std::array<ChannelClass, 3> all{};
  int n = 0;
  [[nodiscard]] constexpr const ChannelClass* begin() const { return all.data(); }
  [[nodiscard]] constexpr const ChannelClass* end() const { return all.data() + n; }
};
// One class for all channels.
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
  // REQUIRES: bits is 2, 3, 4 or 8; head_dim is a multiple of 16; values have only one class.
  TileLayout(Side side, int bits, int head_dim) : TileLayout(side, one_class(bits, head_dim)) {}
  TileLayout(Side side, const ChannelClasses& classes);

  [[nodiscard]] std::size_t code_bytes() const { return code_bytes_; }  // a multiple of 64
  [[nodiscard]] Side side() const { return side_; }
  [[nodiscard]] const ChannelClasses& classes() const { return classes_; }
  [[nodiscard]] int head_dim() const { return head_dim_; }

  // Write and read the codes of one token, one code per byte.
  void put(std::span<std::uint8_t> tile, int token, std::span<const std::uint8_t> codes) const;
  void get(std::span<const std::uint8_t> tile, int token, std::span<std::uint8_t> codes) const;

  // One token packed alone, in the same form for keys and values: the words that a key's slot
  // holds, one after the other.
  [[nodiscard]] std::size_t token_bytes() const { return code_bytes_ / kTileTokens; }
  void take(std::span<const std::uint8_t> tile, int token, std::span<std::uint8_t> packed) const;
  void place(std::span<std::uint8_t> tile, int token, std::span<const std::uint8_t> packed) const;

 private:
  Side side_;
  ChannelClasses classes_;
  int head_dim_ = 0;
  std::size_t code_bytes_;
};

}  // namespace slipstream::turbo
