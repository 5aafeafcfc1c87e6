// The codec on vector instructions. The results are byte for byte those that rotation.h,
// vector_codec.h and tile.h specify. Each kernel runs on the best instruction set of the machine.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstdint>
#include <span>

#include "device/codec/rotation.h"
#include "device/codec/tile.h"

namespace slipstream::turbo {

void rotate_fast(const Rotation& rotation, std::span<float> x);
void rotate_back_fast(const Rotation& rotation, std::span<float> x);

// The same as encode().
// REQUIRES: rotated has a multiple of 16 components.
std::uint16_t encode_fast(int bits, std::span<const float> rotated, std::span<std::uint8_t> codes);

// The same as encode_fitted().
std::uint16_t encode_fitted_fast(const ChannelClasses& classes, std::span<const float> weights,
                                 std::span<const float> z, std::span<std::uint8_t> codes);
// y = matrix * x for vectors of dim numbers, which lie one after the other. columns: the matrix,
// column after column. Sums go over ascending columns with fused multiply-adds.
// REQUIRES: dim is a multiple of 16.
void multiply_fast(std::span<const float> columns, std::size_t dim, std::span<const float> x,
                   std::span<float> y);

// Writes the signs of a key, eight to a byte, `stride` apart, and returns their scale: the sum of
// squares / the sum of magnitudes (kv_buffer/key_signs.h). Numbers that are not finite count as 0.
// REQUIRES: x has a multiple of 16 components.
[[nodiscard]] float put_signs_fast(std::span<const float> x, std::uint8_t* bytes,
                                   std::size_t stride);

// The same as TileLayout::put(), get(), take() and place(). take_fast and place_fast also move the
// padding behind a key's last channel, which has no meaning.
void put_fast(const TileLayout& layout, std::span<std::uint8_t> tile, int token,
              std::span<const std::uint8_t> codes);
void get_fast(const TileLayout& layout, std::span<const std::uint8_t> tile, int token,
              std::span<std::uint8_t> codes);
void take_fast(const TileLayout& layout, std::span<const std::uint8_t> tile, int token,
               std::span<std::uint8_t> packed);
void place_fast(const TileLayout& layout, std::span<std::uint8_t> tile, int token,
                std::span<const std::uint8_t> packed);

}  // namespace slipstream::turbo
