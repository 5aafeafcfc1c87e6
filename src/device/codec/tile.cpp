#include "device/codec/tile.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace slipstream::turbo {
namespace {

constexpr std::size_t kWordBytes = 4;
constexpr std::size_t kGroupBytes = 64;  // 16 slots of one word

struct Place {
  std::size_t byte;
  int shift;
};

// A word of a slot holds 32 / plane_bits positions. Position 4k + j is in byte j, from bit
// k * plane_bits up.
constexpr Place place(int plane_bits, int slot, int position) {
  const int per_word = 32 / plane_bits;
  const int in_word = position % per_word;
  return {.byte = static_cast<std::size_t>(position / per_word) * kGroupBytes +
                  static_cast<std::size_t>(slot * 4 + in_word % 4),
          .shift = in_word / 4 * plane_bits};
}

void put_bits(std::span<std::uint8_t> plane, int plane_bits, int slot, int position,
              unsigned value) {
  const Place at = place(plane_bits, slot, position);
  const unsigned mask = ((1U << static_cast<unsigned>(plane_bits)) - 1U)
                        << static_cast<unsigned>(at.shift);
  const unsigned rest = plane[at.byte] & ~mask;
  plane[at.byte] =
      static_cast<std::uint8_t>(rest | ((value << static_cast<unsigned>(at.shift)) & mask));
}

// The width is a template parameter for speed: saving a cache reads every token this way.
template <int kPlaneBits>
void get_plane(std::span<const std::uint8_t> plane, Side side, int token, unsigned shift,
               std::span<std::uint8_t> codes) {
  constexpr unsigned kMask = (1U << static_cast<unsigned>(kPlaneBits)) - 1U;
  for (std::size_t channel = 0; channel < codes.size(); ++channel) {
    const auto [slot, position] = place_in_tile(side, token, static_cast<int>(channel));
    const Place at = place(kPlaneBits, slot, position);
    const unsigned code =
        (static_cast<unsigned>(plane[at.byte]) >> static_cast<unsigned>(at.shift)) & kMask;
    codes[channel] = static_cast<std::uint8_t>(codes[channel] | (code << shift));
  }
}

// Writes one token's codes of one class into the tile of that class.
void put_class(std::span<std::uint8_t> tile, Side side, int bits, int token,
               std::span<const std::uint8_t> codes) {
  const int low_bits = bits == 3 ? 2 : bits;
  const auto n_channels = static_cast<int>(codes.size());
  for (int channel = 0; channel < n_channels; ++channel) {
    const auto [slot, position] = place_in_tile(side, token, channel);
    const unsigned code = codes[static_cast<std::size_t>(channel)];
    put_bits(tile, low_bits, slot, position, code);
    if (bits == 3) {
      put_bits(tile.subspan(plane_bytes(2, n_channels)), 1, slot, position, code >> 2U);
    }
  }
}

void get_class(std::span<const std::uint8_t> tile, Side side, int bits, int token,
               std::span<std::uint8_t> codes) {
  std::ranges::fill(codes, std::uint8_t{0});
  switch (bits) {
    case 2: return get_plane<2>(tile, side, token, 0, codes);
    case 3:
      get_plane<2>(tile, side, token, 0, codes);
      return get_plane<1>(tile.subspan(plane_bytes(2, static_cast<int>(codes.size()))), side, token,
                          2, codes);
    case 4: return get_plane<4>(tile, side, token, 0, codes);
    default: return get_plane<8>(tile, side, token, 0, codes);
  }
}

// Calls work(class, its tile, its codes) for each class.
void for_each_class(const ChannelClasses& classes, auto tile, auto codes, auto work) {
  for (const ChannelClass& one : classes) {
    const auto n = static_cast<std::size_t>(one.n_channels);
    work(one, tile, codes.first(n));
    tile = tile.subspan(tile_code_bytes(one.bits, one.n_channels));
    codes = codes.subspan(n);
  }
}

}  // namespace

TileLayout::TileLayout(Side side, const ChannelClasses& classes)
    : side_(side), classes_(classes), code_bytes_(tile_code_bytes(classes)) {
  SLIP_CHECK(classes.n == 1 || side == Side::kKey, "only keys have classes");
  for (const auto [bits, n_channels] : classes) {
    SLIP_CHECK(bits == 2 || bits == 3 || bits == 4 || bits == 8, "a width without a layout");
    SLIP_CHECK(n_channels > 0 && n_channels % 8 == 0, "a class that is not a multiple of 8");
    head_dim_ += n_channels;
  }
  SLIP_CHECK(head_dim_ > 0 && head_dim_ % kTileTokens == 0, "a head that is not a multiple of 16");
}

void TileLayout::put(std::span<std::uint8_t> tile, int token,
                     std::span<const std::uint8_t> codes) const {
  for_each_class(classes_, tile, codes, [&](const ChannelClass& one, auto part, auto its_codes) {
    put_class(part, side_, one.bits, token, its_codes);
  });
}

void TileLayout::get(std::span<const std::uint8_t> tile, int token,
                     std::span<std::uint8_t> codes) const {
  for_each_class(classes_, tile, codes, [&](const ChannelClass& one, auto part, auto its_codes) {
    get_class(part, side_, one.bits, token, its_codes);
  });
}

void TileLayout::take(std::span<const std::uint8_t> tile, int token,
                      std::span<std::uint8_t> packed) const {
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(head_dim_));
  get(tile, token, codes);
  std::vector<std::uint8_t> key_tile(code_bytes_);
  TileLayout(Side::kKey, classes_).put(key_tile, 0, codes);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    packed[i] = key_tile[i / kWordBytes * kGroupBytes + i % kWordBytes];
  }
}

void TileLayout::place(std::span<std::uint8_t> tile, int token,
                       std::span<const std::uint8_t> packed) const {
  std::vector<std::uint8_t> key_tile(code_bytes_);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    key_tile[i / kWordBytes * kGroupBytes + i % kWordBytes] = packed[i];
  }
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(head_dim_));
  TileLayout(Side::kKey, classes_).get(key_tile, 0, codes);
  put(tile, token, codes);
}

}  // namespace slipstream::turbo
