// Vector codec: converts one rotated (rotation.h) key or value of one head to and from codes and an
// f16 scale. This is the scalar reference: every vector kernel has to give the same bytes.
//
//   2, 3, 4 bits   value = scale * centroids_i8(bits)[code]     scale = |x| / |centroids_i8[codes]|
//   8 bits         value = scale * (code - 128), code 1..255    scale = max |x_i| / 127
//
// encode(decode(e)) == e, also if the decoded vector is rotated back, rounded to f16 and rotated
// again, as when a cache is saved and restored. (Except at 8 bits below a peak of about 0.0005, and
// at fewer bits below a tenth of that: there f16 is coarser than the codes.)
//
// Threads: pure functions, no allocation. Errors: none; encode() accepts every vector and decode()
//          any bytes. A decoded value is finite if the scale is.
#pragma once

#include <cstdint>
#include <span>

#include "device/codec/tile.h"

namespace slipstream::turbo {

inline constexpr float kScaleMax = 65408.0F;  // the largest f16 with 9 significant bits

constexpr std::uint8_t middle_code(int bits) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(bits - 1));
}

// The largest component may exceed the largest level, to which it is cut, by at most this factor. A
// vector with a larger peak is scaled to less than variance 1. At 4 bits that is one in ten
// Gaussian vectors of dim 128, with a small gain. If one block of the rotation is 5 times larger
// than the rest (dim 576 = 512 + 64), the error falls from 0.090 to 0.030 at 4 bits and from 0.166
// to 0.107 at 3 bits. At 2 bits no limit helps.
constexpr float peak_cut_max(int bits) { return bits == 4 ? 1.2F : bits == 3 ? 1.8F : 1e6F; }

// Encodes a vector, one code per byte, and returns the scale as f16 bits.
// REQUIRES: there are as many codes as components, at most kHeadDimMax.
//
// Codes of 2, 3, 4 bits are the levels nearest to x scaled to variance 1 (or less: peak_cut_max).
// The scale then keeps the length of x instead of minimising the error: nearest levels are shorter
// than x, which would flatten every softmax (by 12 % of each score at 2 bits; if the length is
// kept, by 6 %).
//
// For stability, scales have 9 significant bits: rounding to f16 may change a length by 2^-11, but
// then never a scale. And a vector that already is levels times a factor is recognised and keeps
// its codes: scaled to variance 1 its levels could cross thresholds, because they are shorter than
// x where x was cut.
//
// Components that are not finite count as 0. A vector too small for a scale above 0 becomes the
// zero vector: scale 0 and the middle code everywhere. The largest scale is kScaleMax.
std::uint16_t encode(int bits, std::span<const float> rotated, std::span<std::uint8_t> codes);

// The steps of encode() that process every component, so that kernels can replace them.
struct VectorStatistics {
  float peak;     // largest magnitude
  double length;  // in double, where squares of floats are exact; additions in any order
};
struct EncodeSteps {
  VectorStatistics (*measure)(std::span<const float> x);
  // The codes of the levels nearest to x * gain.
  void (*quantise)(int bits, std::span<const float> x, float gain, std::span<std::uint8_t> codes);
  // Whether each component of x * gain is within the tolerance of some level.
  bool (*are_levels)(int bits, std::span<const float> x, float gain, float tolerance);
  // The sum of squares of the levels of codes.
  int (*sum_of_squares)(int bits, std::span<const std::uint8_t> codes);
  // The codes x / scale + 128, rounded to nearest, ties to even.
  void (*quantise_linear)(std::span<const float> x, float scale, std::span<std::uint8_t> codes);
  // The weighted sum of squared errors of fitted codes with this scale, in double like the length.
  double (*fitted_error)(const ChannelClasses& classes, std::span<const float> weights,
                         std::span<const float> z, float scale);
};
std::uint16_t encode_with(const EncodeSteps& steps, int bits, std::span<const float> rotated,
                          std::span<std::uint8_t> codes);

// Codes are masked to their bits.
void decode(int bits, std::uint16_t scale_f16, std::span<const std::uint8_t> codes,
            std::span<float> rotated);

// Encodes a key in the basis of its fit (key_fit.h), where each class of channels has its own
// width. In every class value = scale * level, and all levels have one unit (fitted_i8; at 8 bits
// the code - 128). Levels are made for the known deviation of the class, so the scale is the one of
// a few near 1 that minimises the weighted error. Others are tried for a vector that exceeds the
// deviation, as that of a first token may. weights: of each channel's squared error.
std::uint16_t encode_fitted(const ChannelClasses& classes, std::span<const float> weights,
                            std::span<const float> z, std::span<std::uint8_t> codes);
std::uint16_t encode_fitted_with(const EncodeSteps& steps, const ChannelClasses& classes,
                                 std::span<const float> weights, std::span<const float> z,
                                 std::span<std::uint8_t> codes);
void decode_fitted(const ChannelClasses& classes, std::uint16_t scale_f16,
                   std::span<const std::uint8_t> codes, std::span<float> z);

}  // namespace slipstream::turbo
