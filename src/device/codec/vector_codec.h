// Vector codec: one key or value of one head, already rotated (rotation.h), to and from codes and
// one f16 scale. The scalar reference: every vector kernel has to give the same bytes.
//
//   2, 3, 4 bits   value = scale * centroids_i8(bits)[code]     scale = |x| / |centroids_i8[codes]|
//   8 bits         value = scale * (code - 128), code 1..255    scale = max |x_i| / 127
//
// encode(decode(e)) == e, also when the decoded vector is rotated back, rounded to f16 and rotated
// again, as saving a cache and restoring it does. (Not at 8 bits below a peak of about 0.0005, nor
// at the others below a tenth of that: there f16 is coarser than the codes.)
//
// Threads: pure functions, no allocation. Errors: none; whatever encode() is given has a code, and
// whatever bytes decode() is given have a value, which is finite if the scale is.
#pragma once

#include <cstdint>
#include <span>

#include "device/codec/tile.h"

namespace slipstream::turbo {

inline constexpr float kScaleMax = 65408.0F;  // the largest f16 with 9 significant bits

constexpr std::uint8_t middle_code(int bits) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(bits - 1));
}

// The largest component is cut to the largest level by no more than this factor; a steeper vector
// is scaled to less than variance 1. That is one Gaussian vector of dim 128 in ten at 4 bits, to a
// small gain. Where one block of the rotation is 5 times larger than the rest (dim 576 = 512 + 64)
// the error falls from 0.090 to 0.030 at 4 bits and from 0.166 to 0.107 at 3; at 2 bits no limit
// helps.
constexpr float peak_cut_max(int bits) { return bits == 4 ? 1.2F : bits == 3 ? 1.8F : 1e6F; }

// Codes of 2, 3, 4 bits are the nearest levels to x scaled to variance 1 (or less: peak_cut_max).
// The scale then keeps the length of x rather than making the error least: nearest levels fall
// short of x, which would flatten every softmax (by 12 % of each score at 2 bits, 6 % with the
// length kept).
//
// For stability, scales have 9 significant bits: rounding to f16 may change a length by 2^-11, but
// then never a scale. And a vector that already is levels times a factor is recognised and keeps
// its codes: at variance 1 its levels could cross thresholds, being short of x where x was cut.
//
// Components that are not finite count as 0. A vector too small for a scale above 0 becomes the
// zero vector: scale 0, every code the middle one. Scales end at kScaleMax.
//
// Returns the scale as f16 bits. One code per byte; as many as components, at most
// kHeadDimMax.
std::uint16_t encode(int bits, std::span<const float> rotated, std::span<std::uint8_t> codes);

// The steps of encode() that look at every component, so that kernels can take their place.
struct VectorStatistics {
  float peak;     // largest magnitude
  double length;  // in double, where squares of floats are exact: in any order of additions
};
struct EncodeSteps {
  VectorStatistics (*measure)(std::span<const float> x);
  // Nearest levels to x * gain.
  void (*quantise)(int bits, std::span<const float> x, float gain, std::span<std::uint8_t> codes);
  // Of the levels of codes.
  int (*sum_of_squares)(int bits, std::span<const std::uint8_t> codes);
  // x / scale, to even where it is halfway, + 128.
  void (*quantise_linear)(std::span<const float> x, float scale, std::span<std::uint8_t> codes);
  // Of fitted codes with this scale: the weighted sum of squares, in double as the length.
  double (*fitted_error)(const ChannelClasses& classes, std::span<const float> weights,
                         std::span<const float> z, float scale);
};
std::uint16_t encode_with(const EncodeSteps& steps, int bits, std::span<const float> rotated,
                          std::span<std::uint8_t> codes);

// Codes are masked to their bits.
void decode(int bits, std::uint16_t scale_f16, std::span<const std::uint8_t> codes,
            std::span<float> rotated);

// A key in the basis of its fit (key_fit.h), classes of channels with a width each: in every class
// value = scale * level, and levels have one unit (fitted_i8; at 8 bits the code - 128). The scale
// is that of a few near 1 which makes the weighted error least: levels are made for the class's
// known deviation. Others are tried for a vector that exceeds it, as a first token may.
// weights: of each channel's squared error.
std::uint16_t encode_fitted(const ChannelClasses& classes, std::span<const float> weights,
                            std::span<const float> z, std::span<std::uint8_t> codes);
std::uint16_t encode_fitted_with(const EncodeSteps& steps, const ChannelClasses& classes,
                                 std::span<const float> weights, std::span<const float> z,
                                 std::span<std::uint8_t> codes);
void decode_fitted(const ChannelClasses& classes, std::uint16_t scale_f16,
                   std::span<const std::uint8_t> codes, std::span<float> z);

}  // namespace slipstream::turbo
