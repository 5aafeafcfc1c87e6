// The vector kernels of attention on tiles. Each runs on the best instruction set of the machine;
// the scalar ones in tile_kernels_ref.h are the specification.
//
// An expanded tile is head_dim x 16 floats: element [position][slot], see codec/tile.h.
//
// Threads: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "device/codec/tile.h"

namespace slipstream::turbo {

// Codes and f16 scales to numbers, still rotated.
void expand_tile(Side side, int bits, std::span<const std::uint8_t> codes,
                 std::span<const std::uint16_t> scales, std::span<float> tile);

// scores[token] = sum over channels of query[channel] * tile[channel][token]
void score_tile(std::span<const float> query, std::span<const float> tile,
                std::span<float, kTileTokens> scores);

// output[channel] += sum over tokens of weights[token] * tile[channel / 16 * 16 + token][channel %
// 16]
void accumulate_tile(std::span<const float, kTileTokens> weights, std::span<const float> tile,
                     std::span<float> output);

// x[i] *= factor
void scale_vector(std::span<float> x, float factor);

// x[i] = exp(x[i] - max), returns the sum. -infinity gives 0.
float exp_tile(std::span<float, kTileTokens> x, float max);

}  // namespace slipstream::turbo
