#include "device/codec/f16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace slipstream::turbo {
namespace {

__extension__ using CompilerHalf = _Float16;

std::uint16_t compiler_half(float value) {
  return std::bit_cast<std::uint16_t>(static_cast<CompilerHalf>(value));
}

bool is_nan(std::uint16_t half) { return (half & 0x7fffU) > kF16Infinity; }

TEST(F16, EveryHalfBecomesTheFloatTheCompilerSays) {
  for (std::uint32_t half = 0; half <= 0xffff; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    const auto expected = static_cast<float>(std::bit_cast<CompilerHalf>(bits));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(f16_to_float(bits)),
              std::bit_cast<std::uint32_t>(expected))
        << half;
  }
}

TEST(F16, EveryHalfSurvivesTheWayThroughFloat) {
  for (std::uint32_t half = 0; half <= 0xffff; ++half) {
    const auto bits = static_cast<std::uint16_t>(half);
    // A signalling NaN comes back quiet.
    const std::uint32_t expected = is_nan(bits) ? half | 0x200U : half;
    EXPECT_EQ(float_to_f16(f16_to_float(bits)), expected);
  }
}

// Tests numbers around every half and around every midpoint between two halfs.
TEST(F16, RoundsLikeTheCompilerAtEveryTie) {
  for (std::uint32_t half = 0; half < kF16Infinity; ++half) {
    const float here = f16_to_float(static_cast<std::uint16_t>(half));
    const float next =
        half + 1 == kF16Infinity ? 65536.0F : f16_to_float(static_cast<std::uint16_t>(half + 1));
    const float middle = here + (next - here) / 2;
    for (const float value : {here, std::nextafter(here, next), std::nextafter(middle, here),
                              middle, std::nextafter(middle, next), std::nextafter(next, here)}) {
      ASSERT_EQ(float_to_f16(value), compiler_half(value)) << value;
      ASSERT_EQ(float_to_f16(-value), compiler_half(-value)) << value;
    }
  }
}

TEST(F16, RoundsFloatsOfAllSizesLikeTheCompiler) {
  for (std::uint32_t i = 0; i < 200000; ++i) {
    const auto value = std::bit_cast<float>(i * 2654435761U);  // scattered over all floats
    const std::uint16_t half = float_to_f16(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(is_nan(half));
    } else {
      ASSERT_EQ(half, compiler_half(value)) << value;
    }
  }
}

static_assert(float_to_f16(1.0F) == 0x3c00 && float_to_f16(65504.0F) == 0x7bff);
static_assert(float_to_f16(0x1p-24F) == 1 && float_to_f16(0x1p-25F) == 0);
static_assert(float_to_f16(std::numeric_limits<float>::infinity()) == kF16Infinity);

}  // namespace
}  // namespace slipstream::turbo
