#include "device/codec/vector_codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "contract/scheme.h"
#include "device/codec/codebook.h"
#include "device/codec/f16.h"
#include "device/codec/rotation.h"

namespace slipstream::turbo {
namespace {

float finite_or_zero(float value) { return std::isfinite(value) ? value : 0.0F; }

VectorStatistics measure(std::span<const float> x) {
  VectorStatistics found{.peak = 0, .length = 0};
  double sum = 0;
  for (const float value : x) {
    const float finite = finite_or_zero(value);
    found.peak = std::max(found.peak, std::abs(finite));
    sum += static_cast<double>(finite) * static_cast<double>(finite);
  }
  found.length = std::sqrt(sum);
  return found;
}

// The distance between neighbouring scales around this one: they have 9 significant bits, and f16
// limits the smallest ones.
double scale_quantum(double scale) { return std::ldexp(1.0, std::max(std::ilogb(scale) - 8, -24)); }

float scale_nearest(double scale) {
  const double quantum = scale_quantum(scale);
  const double rounded = std::floor(scale / quantum + 0.5) * quantum;
  return static_cast<float>(std::min(rounded, static_cast<double>(kScaleMax)));
}

// Rounds down unless the next scale is within 2^-10. Then the peak is never below 126.5 scales: its
// level is 127, and encoding the decoded vector finds the same peak. Rounding to nearest would not
// ensure that for subnormals.
float scale_below(double scale) {
  const double raised = scale * (1 + 0x1p-10);
  const double quantum = scale_quantum(raised);
  const double rounded = std::floor(raised / quantum) * quantum;
  return static_cast<float>(std::min(rounded, static_cast<double>(kScaleMax)));
}

std::uint16_t encode_zero(int bits, std::span<std::uint8_t> codes) {
  std::ranges::fill(codes, middle_code(bits));
  return float_to_f16(0);
}

// The largest distance of a component from a level, in units of variance 1, for a vector to be
// recognised as decoded. Rounding to f16 moves one component by at most 2^-11 of the vector's
// length, 1/64 at dim 1024, and the peak that sets the gain by as much.
constexpr float kToleranceOfData = 1.0F / 32;
// Codes that could be recognised as other codes after a small change are replaced by those at once
// (settle). This is twice the other tolerance, so that rounding never decides.
constexpr float kToleranceOfCodes = 1.0F / 16;

std::size_t nearest_level(std::span<const float> borders, float y) {
  return static_cast<std::size_t>(std::ranges::upper_bound(borders, y) - borders.begin());
}

bool are_levels(int bits, std::span<const float> x, float gain, float tolerance) {
  const std::span<const float> levels = centroids(bits);
  const std::span<const float> borders = thresholds(bits);
  return std::ranges::all_of(x, [&](float value) {
    const float y = finite_or_zero(value) * gain;
    return std::abs(y - levels[nearest_level(borders, y)]) <= tolerance;
  });
}

// If the components are levels times a factor, within the tolerance, writes the codes of those
// levels and returns true. The peak may be any level from `lowest` on; the largest that fits is
// taken. Ordinary vectors are rejected after a few components.
bool recognise(const EncodeSteps& steps, int bits, std::span<const float> x, float peak,
               std::size_t lowest, float tolerance, std::span<std::uint8_t> codes) {
  const std::span<const float> levels = centroids(bits);
  for (std::size_t k = levels.size() - 1; k >= lowest; --k) {
    const float gain = levels[k] / peak;
    if (!steps.are_levels(bits, x, gain, tolerance)) continue;
    steps.quantise(bits, x, gain, codes);
    return true;
  }
  return false;
}

// The code of the positive level with the largest magnitude among the levels of codes.
std::size_t largest_code(int bits, std::span<const std::uint8_t> codes) {
  std::uint8_t least = codes[0];
  std::uint8_t most = codes[0];
  for (const std::uint8_t code : codes) {
    least = std::min(least, code);
    most = std::max(most, code);
  }
  const std::size_t n_levels = std::size_t{1} << static_cast<unsigned>(bits);
  return std::max<std::size_t>(most, n_levels - 1 - least);
}

// Replaces codes that would be recognised as levels with a larger peak by the codes of those
// levels. Each round raises the largest level.
void settle(const EncodeSteps& steps, int bits, std::span<std::uint8_t> codes) {
  const std::span<const std::int8_t> levels = centroids_i8(bits);
  std::array<float, kHeadDimMax> memory;
  const std::span x(memory.data(), codes.size());
  bool changed = true;
  while (changed) {
    const std::size_t largest = largest_code(bits, codes);
    if (largest + 1 == levels.size()) return;
    std::ranges::transform(codes, x.begin(),
                           [&](std::uint8_t code) { return static_cast<float>(levels[code]); });
    changed = recognise(steps, bits, x, static_cast<float>(levels[largest]), largest + 1,
                        kToleranceOfCodes, codes);
  }
}

void quantise_vector(int bits, std::span<const float> x, float gain,
                     std::span<std::uint8_t> codes) {
  const std::span<const float> borders = thresholds(bits);
  std::ranges::transform(x, codes.begin(), [&](float value) {
    return static_cast<std::uint8_t>(nearest_level(borders, finite_or_zero(value) * gain));
  });
}

int sum_of_squares(int bits, std::span<const std::uint8_t> codes) {
  const std::span<const std::int8_t> levels = centroids_i8(bits);
  int sum = 0;
  for (const std::uint8_t code : codes) sum += levels[code] * levels[code];
  return sum;
}

void quantise_linear(std::span<const float> x, float scale, std::span<std::uint8_t> codes) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float steps = std::nearbyint(finite_or_zero(x[i]) / scale);  // ties to even
    codes[i] =
        static_cast<std::uint8_t>(static_cast<int>(std::clamp(steps, -127.0F, 127.0F)) + 128);
  }
}

std::uint16_t encode_levels(const EncodeSteps& steps, int bits, std::span<const float> x,
                            std::span<std::uint8_t> codes) {
  const VectorStatistics found = steps.measure(x);
  // This limit is far below any vector with a scale above 0, and far above lengths at which the
  // gain would overflow.
  if (found.length < 1e-9) return encode_zero(bits, codes);
  const std::size_t smallest_positive = centroids(bits).size() / 2;
  if (!recognise(steps, bits, x, found.peak, smallest_positive, kToleranceOfData, codes)) {
    const double to_variance_1 = std::sqrt(static_cast<double>(x.size())) / found.length;
    const float to_peak = peak_cut_max(bits) * centroids(bits).back() / found.peak;
    steps.quantise(bits, x, std::min(static_cast<float>(to_variance_1), to_peak), codes);
  }
  settle(steps, bits, codes);
  const float scale = scale_nearest(found.length / std::sqrt(steps.sum_of_squares(bits, codes)));
  if (scale == 0) return encode_zero(bits, codes);
  return float_to_f16(scale);
}

std::uint16_t encode_linear(const EncodeSteps& steps, std::span<const float> x,
                            std::span<std::uint8_t> codes) {
  const double wanted = static_cast<double>(steps.measure(x).peak) / 127;
  const float scale = wanted == 0 ? 0 : scale_below(wanted);
  if (scale == 0) return encode_zero(8, codes);
  steps.quantise_linear(x, scale, codes);
  return float_to_f16(scale);
}

int fitted_level(int bits, float z, float scale) {
  if (bits == 8) {
    return static_cast<int>(std::clamp(std::nearbyint(finite_or_zero(z) / scale), -127.0F, 127.0F));
  }
  const float gain = 1 / (kFittedUnit * scale);
  return fitted_i8(bits)[nearest_level(thresholds(bits), finite_or_zero(z) * gain)];
}

double fitted_error(const ChannelClasses& classes, std::span<const float> weights,
                    std::span<const float> z, float scale) {
  double sum = 0;
  std::size_t i = 0;
  for (const auto [bits, n_channels] : classes) {
    for (const std::size_t end = i + static_cast<std::size_t>(n_channels); i < end; ++i) {
      // The product is exact, because a scale has 9 bits and a level 7.
      const float level = static_cast<float>(fitted_level(bits, z[i], scale));
      const auto error = static_cast<double>(finite_or_zero(z[i]) - scale * level);
      sum += static_cast<double>(weights[i]) * (error * error);
    }
  }
  return sum;
}

constexpr EncodeSteps kReferenceSteps{.measure = measure,
                                      .quantise = quantise_vector,
                                      .are_levels = are_levels,
                                      .sum_of_squares = sum_of_squares,
                                      .quantise_linear = quantise_linear,
                                      .fitted_error = fitted_error};

// The factor by which a vector exceeds the range of its codes. 8-bit codes end at level 127; codes
// of fewer bits clip the tail of a Gaussian without harm.
float fitted_excess(const ChannelClasses& classes, std::span<const float> z) {
  float excess = 0;
  for (const auto [bits, n_channels] : classes) {
    float peak = 0;
    for (const float value : z.first(static_cast<std::size_t>(n_channels))) {
      peak = std::max(peak, std::abs(finite_or_zero(value)));
    }
    const float top =
        bits == 8 ? 127.0F : static_cast<float>(fitted_i8(bits).back()) * (bits == 4 ? 1.5F : 2.0F);
    excess = std::max(excess, peak / top);
    z = z.subspan(static_cast<std::size_t>(n_channels));
  }
  return excess;
}

// Scales around 1 in steps of a sixth of an octave, up to the largest.
constexpr int kPerOctave = 6;
constexpr int kStepsFromOne = 16 * kPerOctave;
std::array<float, 2 * kStepsFromOne + 1> fitted_scales() {
  std::array<float, 2 * kStepsFromOne + 1> scales;
  for (int i = -kStepsFromOne; i <= kStepsFromOne; ++i) {
    scales[static_cast<std::size_t>(i + kStepsFromOne)] =
        scale_nearest(std::exp2(static_cast<double>(i) / kPerOctave));
  }
  return scales;
}

// Tries scales around 1 in steps of a sixth of an octave and, if the vector exceeds the range of
// its codes, also scales around the one that holds it. A decoded vector tries the scale that it was
// encoded with and so keeps its codes: it still exceeds the range, because those other scales begin
// at 2, the most that codes are cut by.
float fitted_scale(const EncodeSteps& steps, const ChannelClasses& classes,
                   std::span<const float> weights, std::span<const float> z) {
  static const std::array<float, 2 * kStepsFromOne + 1> scales = fitted_scales();
  float best = 1;
  double least = std::numeric_limits<double>::infinity();
  const auto try_all = [&](int first, int last) {
    for (int i = first; i <= last; ++i) {
      const int step = std::min(i, kStepsFromOne) + kStepsFromOne;
      const float scale = scales[static_cast<std::size_t>(step)];
      const double error = steps.fitted_error(classes, weights, z, scale);
      if (error < least) {
        least = error;
        best = scale;
      }
    }
  };
  try_all(-2, 2);
  if (const float excess = fitted_excess(classes, z); excess > 0.99F) {
    const auto holds_it = static_cast<int>(std::ceil(kPerOctave * std::log2(excess)));
    try_all(std::max(kPerOctave, holds_it - 6), holds_it + 14);
  }
  return best;
}

}  // namespace

std::uint16_t encode_with(const EncodeSteps& steps, int bits, std::span<const float> rotated,
                          std::span<std::uint8_t> codes) {
  SLIP_CHECK(is_code_bits(bits), "codes have 2, 3, 4 or 8 bits");
  SLIP_CHECK(rotated.size() == codes.size(), "one code per component");
  SLIP_CHECK(std::cmp_less_equal(rotated.size(), kHeadDimMax),
             "the tolerance holds up to kHeadDimMax");
  return bits == 8 ? encode_linear(steps, rotated, codes)
                   : encode_levels(steps, bits, rotated, codes);
}

std::uint16_t encode(int bits, std::span<const float> rotated, std::span<std::uint8_t> codes) {
  return encode_with(kReferenceSteps, bits, rotated, codes);
}

std::uint16_t encode_fitted_with(const EncodeSteps& steps, const ChannelClasses& classes,
                                 std::span<const float> weights, std::span<const float> z,
                                 std::span<std::uint8_t> codes) {
  const float scale = fitted_scale(steps, classes, weights, z);
  for (const auto [bits, n_channels] : classes) {
    const auto n = static_cast<std::size_t>(n_channels);
    if (bits == 8) {
      steps.quantise_linear(z.first(n), scale, codes.first(n));
    } else {
      steps.quantise(bits, z.first(n), 1 / (kFittedUnit * scale), codes.first(n));
    }
    z = z.subspan(n);
    codes = codes.subspan(n);
  }
  return float_to_f16(scale);
}

std::uint16_t encode_fitted(const ChannelClasses& classes, std::span<const float> weights,
                            std::span<const float> z, std::span<std::uint8_t> codes) {
  return encode_fitted_with(kReferenceSteps, classes, weights, z, codes);
}

void decode_fitted(const ChannelClasses& classes, std::uint16_t scale_f16,
                   std::span<const std::uint8_t> codes, std::span<float> z) {
  const float scale = f16_to_float(scale_f16);
  for (const auto [bits, n_channels] : classes) {
    for (int i = 0; i < n_channels; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const int level = bits == 8 ? codes[at] - 128 : fitted_i8(bits)[codes[at]];
      z[at] = scale * static_cast<float>(level);
    }
    z = z.subspan(static_cast<std::size_t>(n_channels));
    codes = codes.subspan(static_cast<std::size_t>(n_channels));
  }
}

void decode(int bits, std::uint16_t scale_f16, std::span<const std::uint8_t> codes,
            std::span<float> rotated) {
  SLIP_CHECK(is_code_bits(bits), "codes have 2, 3, 4 or 8 bits");
  SLIP_CHECK(rotated.size() == codes.size(), "one code per component");
  const float scale = f16_to_float(scale_f16);
  if (bits == 8) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      rotated[i] = scale * static_cast<float>(codes[i] - 128);
    }
    return;
  }
  const std::span<const std::int8_t> levels = centroids_i8(bits);
  const std::size_t mask = levels.size() - 1;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    rotated[i] = scale * static_cast<float>(levels[codes[i] & mask]);
  }
}

}  // namespace slipstream::turbo
