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

#include <cstddef>
#include <cstdint>
#include <span>

namespace slipstream::turbo {

inline constexpr int kTileTokens = 16;

enum class Side { kKey, kValue };

struct TilePlace {
  int slot;
  int position;
};
constexpr TilePlace place_in_tile(Side side, int token, int channel) {
  if (side == Side::kKey) return {.slot = token, .position = channel};
  return {.slot = channel % kTileTokens, .position = channel / kTileTokens * kTileTokens + token};
}

class TileLayout {
 public:
  // bits: 2, 3, 4 or 8. head_dim: a multiple of 16.
  TileLayout(Side side, int bits, int head_dim);

  [[nodiscard]] std::size_t code_bytes() const { return code_bytes_; }  // a multiple of 64
  [[nodiscard]] int bits() const { return bits_; }
  [[nodiscard]] int head_dim() const { return head_dim_; }

  // Codes of one token, one per byte.
  void put(std::span<std::uint8_t> tile, int token, std::span<const std::uint8_t> codes) const;
  void get(std::span<const std::uint8_t> tile, int token, std::span<std::uint8_t> codes) const;

 private:
  Side side_;
  int bits_;
  int head_dim_;
  std::size_t code_bytes_;
};

// How many scales a vector has: one, except that 8-bit codes have one for every 64 channels. Their
// error grows with the largest number under a scale, and at 8 bits that is worth a quarter bit.
inline constexpr int kChannelsPerScale8 = 64;
constexpr int n_scales(int bits, int head_dim) {
  return bits == 8 ? (head_dim + kChannelsPerScale8 - 1) / kChannelsPerScale8 : 1;
}
// The scales of a tile are f16, [scale][token]: this one is for the position (or channel) given.
constexpr int scale_of_channel(int bits, int channel) {
  return bits == 8 ? channel / kChannelsPerScale8 : 0;
}

// Bytes of one plane of 1, 2, 4 or 8 bits: what a tile of head_dim positions takes.
std::size_t plane_bytes(int plane_bits, int head_dim);

}  // namespace slipstream::turbo
