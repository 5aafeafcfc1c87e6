// f16: converts IEEE half precision to and from float with bit operations, so that all machines and
// kernels agree, whether or not the CPU has an instruction for it.
//
// Rounds to nearest, ties to even. A number that is too large becomes infinity. A NaN becomes a
// quiet NaN with its sign and the top of its payload. Subnormal halfs are exact in both directions.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <bit>
#include <cstdint>

namespace slipstream::turbo {

inline constexpr std::uint16_t kF16Infinity = 0x7c00;

constexpr float f16_to_float(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1fU;
  const std::uint32_t mantissa = half & 0x3ffU;
  if (exponent == 0) {
    // Zero or subnormal: mantissa * 2^-24, exact in a float.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 0x1f) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7f800000U | quiet | (mantissa << 13U));
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
}

constexpr std::uint16_t float_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const auto with_sign = [sign](std::uint32_t half) {
    return static_cast<std::uint16_t>(half | sign);
  };
  if (magnitude > 0x7f800000U) return with_sign(0x7e00U | ((magnitude >> 13U) & 0x3ffU));
  if (magnitude >= 0x477ff000U) return with_sign(kF16Infinity);  // 65520 and above
  if (magnitude < 0x38800000U) {
    // Below 2^-14: the addition of 0.5 rounds the result and leaves it in the last bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return with_sign(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U);
  }
  // Add just under half of the last kept bit, and one more when that bit is odd: ties to even. A
  // carry out of the mantissa lands in the exponent, where it belongs.
  const std::uint32_t odd = (magnitude >> 13U) & 1U;
  return with_sign((magnitude - 0x38000000U + 0xfffU + odd) >> 13U);
}

}  // namespace slipstream::turbo
