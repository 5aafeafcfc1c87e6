// The codec on vector instructions, byte for byte what rotation.h, vector_codec.h and tile.h
// specify. Each runs on the best instruction set of the machine.
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

// As encode(); a multiple of 16 components.
std::uint16_t encode_fast(int bits, std::span<const float> rotated, std::span<std::uint8_t> codes);

// As encode_fitted().
std::uint16_t encode_fitted_fast(const ChannelClasses& classes, std::span<const float> weights,
                                 std::span<const float> z, std::span<std::uint8_t> codes);
// y = matrix x, for vectors of dim numbers, one after the other. columns: the matrix, column after
// column; dim: a multiple of 16. The sums go over ascending columns with fused multiply-adds.
void multiply_fast(std::span<const float> columns, std::size_t dim, std::span<const float> x,
                   std::span<float> y);

// As TileLayout::put(), get(), take() and place(). A key's padding behind its last channel, which
// means nothing, is taken and placed with it.
void put_fast(const TileLayout& layout, std::span<std::uint8_t> tile, int token,
              std::span<const std::uint8_t> codes);
void get_fast(const TileLayout& layout, std::span<const std::uint8_t> tile, int token,
              std::span<std::uint8_t> codes);
void take_fast(const TileLayout& layout, std::span<const std::uint8_t> tile, int token,
               std::span<std::uint8_t> packed);
void place_fast(const TileLayout& layout, std::span<std::uint8_t> tile, int token,
                std::span<const std::uint8_t> packed);

}  // namespace slipstream::turbo
