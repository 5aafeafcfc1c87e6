// Codebook: the levels that a component of variance 1 is rounded to, at 2, 3 and 4 bits.
//
// The ideal levels are Lloyd-Max's for a Gaussian. The levels in use are those rounded to int8,
// largest level = 127, so that a kernel can multiply integers and the reference agrees with it
// exactly: centroid = int8 * i8_step. The rounding adds 0.00 / 0.12 / 0.14 % to the mean square
// error at 2 / 3 / 4 bits. Every table ascends and is symmetric around 0.
//
// The classes of fitted keys (key_fit.h) share one unit, 1 / kFittedUnit of a deviation, so that
// their products can be added as integers: fitted_i8 = round(ideal * kFittedUnit / (1 - mean square
// error)). Ideal levels are shorter than what they stand for, by that error; far tokens would lose
// weight to those that are kept precisely.
//
// Threads: constants. Errors: none; other bits are a bug.
#pragma once

#include <cstdint>
#include <span>

namespace slipstream::turbo {

// Lloyd-Max (lloyd_max.h), 2^bits of them. Only where the others come from.
std::span<const float> ideal_centroids(int bits);

// round(ideal * 127 / largest ideal), and the factor that undoes it.
std::span<const std::int8_t> centroids_i8(int bits);
float i8_step(int bits);

// The same, repeated to 16 of them: what a byte shuffle looks codes up in.
std::span<const std::int8_t, 16> lookup_table(int bits);

// centroids_i8 * i8_step: the levels that are encoded to and decoded from.
std::span<const float> centroids(int bits);

// The mean square error of a Gaussian of variance 1; also of 8 bits over 8.5 deviations.
float level_error(int bits);

// As centroids_i8 and lookup_table, of fitted keys.
inline constexpr float kFittedUnit = 30;
std::span<const std::int8_t> fitted_i8(int bits);
std::span<const std::int8_t, 16> fitted_table(int bits);

// Midpoints of centroids(), 2^bits - 1 of them. The code of y is how many of them are <= y.
std::span<const float> thresholds(int bits);

}  // namespace slipstream::turbo
