// The specification of tile_kernels.h, one number at a time.
//
// Threads: thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "device/codec/tile.h"

namespace slipstream::turbo::ref {

void expand_tile(Side side, int bits, std::span<const std::uint8_t> codes,
                 std::span<const std::uint16_t> scales, std::span<float> tile);
void score_tile(std::span<const float> query, std::span<const float> tile,
                std::span<float, kTileTokens> scores);
void accumulate_tile(std::span<const float, kTileTokens> weights, std::span<const float> tile,
                     std::span<float> output);
float exp_tile(std::span<float, kTileTokens> x, float max);

}  // namespace slipstream::turbo::ref
