// Codebook: the levels that a component of variance 1 is rounded to, at 2, 3 and 4 bits.
//
// The ideal levels are those of Lloyd-Max for a Gaussian. The levels in use are the ideal ones
// rounded to int8, largest level = 127, so that a kernel can multiply integers and agrees exactly
// with the reference: centroid = int8 * i8_step. The rounding adds 0.00 / 0.12 / 0.14 % to the mean
// square error at 2 / 3 / 4 bits. Every table ascends and is symmetric around 0.
//
// Threads: constants. Errors: none; another number of bits is a bug.
#pragma once

#include <cstdint>
#include <span>

namespace slipstream::turbo {

// The 2^bits levels of Lloyd-Max (lloyd_max.h). The other tables are computed from them.
std::span<const float> ideal_centroids(int bits);

// centroids_i8 = round(ideal * 127 / largest ideal); i8_step is the factor that undoes the scaling.
std::span<const std::int8_t> centroids_i8(int bits);
float i8_step(int bits);

// centroids_i8 repeated to 16 entries: the table in which a byte shuffle looks codes up.
std::span<const std::int8_t, 16> lookup_table(int bits);

// centroids_i8 * i8_step: the levels that are encoded to and decoded from.
std::span<const float> centroids(int bits);

// The mean square error for a Gaussian of variance 1. Also defined for 8 bits, whose levels cover
// 8.5 deviations.
float level_error(int bits);

// The same as centroids_i8 and lookup_table, for fitted keys (key_fit.h). Their classes share one
// unit, 1 / kFittedUnit of a deviation, so that their products can be added as integers:
//   fitted_i8 = round(ideal * kFittedUnit / (1 - mean square error))
// The division is needed because ideal levels are shorter, by that error, than the numbers they
// stand for. Without it, distant tokens would lose weight to those that are kept precisely.
inline constexpr float kFittedUnit = 30;
std::span<const std::int8_t> fitted_i8(int bits);
std::span<const std::int8_t, 16> fitted_table(int bits);

// The 2^bits - 1 midpoints of centroids(). The code of y is the number of midpoints <= y.
std::span<const float> thresholds(int bits);

}  // namespace slipstream::turbo
