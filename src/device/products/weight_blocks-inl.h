// What the blocks of quantised weights look like, as GGUF files have them. ggml's declarations are
// in no package. Included once for every instruction set.
//
// Threads: pure functions. Errors: none.
#if defined(SLIPSTREAM_WEIGHT_BLOCKS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIPSTREAM_WEIGHT_BLOCKS_INL_H
#undef SLIPSTREAM_WEIGHT_BLOCKS_INL_H
#else
#define SLIPSTREAM_WEIGHT_BLOCKS_INL_H
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/products/iq2_xxs_table.h"

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kQ8_0Bytes = 34;    // f16 scale, 32 signed bytes
constexpr std::size_t kQ4_0Bytes = 18;    // f16 scale, 16 bytes of nibbles
constexpr std::size_t kMxfp4Bytes = 17;   // exponent, 16 bytes of nibbles
constexpr std::size_t kIq4XsBytes = 136;  // f16 scale, 16 + 32 bits of scales, 128 nibbles
constexpr std::size_t kQ4KBytes = 144;    // f16 scale and minimum, 12 of scales, 128 of nibbles
constexpr std::size_t kQ5KBytes = 176;    // the same with 32 bytes of fifth bits before the nibbles
constexpr std::size_t kIq2XxsBytes =
    66;  // f16 scale, eight times 32 bits of codes, 28 of signs, 4 of scale
constexpr std::size_t kQ6KBytes = 210;  // 128 of low bits, 64 of high bits, 16 scales, f16 scale
constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kSuperBlock = 256;

// What a nibble stands for.
alignas(16) constexpr std::int8_t kQ4_0Levels[16] = {-8, -7, -6, -5, -4, -3, -2, -1,
                                                     0,  1,  2,  3,  4,  5,  6,  7};
alignas(16) constexpr std::int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};
alignas(16) constexpr std::int8_t kMxfp4Levels[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

HWY_INLINE float half_at(const std::uint8_t* bytes) {
  hwy::float16_t half;
  std::memcpy(&half, bytes, sizeof(half));
  return hn::GetLane(
      hn::PromoteTo(hn::CappedTag<float, 1>(), hn::Set(hn::CappedTag<hwy::float16_t, 1>(), half)));
}

// Half of 2^(exponent - 127): the levels of MXFP4 are twice its numbers.
HWY_INLINE float mxfp4_scale(std::uint8_t exponent) {
  const std::uint32_t bits =
      exponent < 2 ? 0x00200000U << exponent : (std::uint32_t{exponent} - 1) << 23U;
  return std::bit_cast<float>(bits);
}

struct ScaleAndMinimum {
  std::uint32_t scale;
  std::uint32_t minimum;
};

// Eight scales and minima of 6 bits in 12 bytes.
HWY_INLINE ScaleAndMinimum scale_of_q4_k(const std::uint8_t* bytes, int i) {
  const auto at = [bytes](int idx) -> std::uint32_t { return bytes[idx]; };
  if (i < 4) return {.scale = at(i) & 63U, .minimum = at(i + 4) & 63U};
  return {.scale = (at(i + 4) & 15U) | (at(i - 4) >> 6U << 4U),
          .minimum = (at(i + 4) >> 4U) | (at(i) >> 6U << 4U)};
}

// The scale of part `i` of eight of a block of IQ4_XS.
HWY_INLINE float scale_of_iq4_xs(const std::uint8_t* block, unsigned i) {
  const unsigned low = (block[4 + i / 2] >> (4 * (i % 2))) & 15U;
  const unsigned high_bits = block[2] | (unsigned{block[3]} << 8U);
  const unsigned high = (high_bits >> (2 * i)) & 3U;
  return half_at(block) * static_cast<float>(static_cast<int>(low | (high << 4U)) - 32);
}

// The scale of part `i` of eight of a block of IQ2_XXS.
HWY_INLINE float scale_of_iq2_xxs(const std::uint8_t* block, std::size_t i) {
  const unsigned bits = block[2 + 8 * i + 7] >> 4U;
  return half_at(block) * (0.5F + static_cast<float>(bits)) * 0.25F;
}

// The thirty-two weights of part `i` of eight of a block of IQ2_XXS, without their scale.
HWY_INLINE void levels_of_iq2_xxs(const std::uint8_t* block, std::size_t i,
                                  const Iq2XxsTable& table, std::int8_t* HWY_RESTRICT levels) {
  const hn::CappedTag<std::int8_t, 32> db;
  const std::uint8_t* codes = block + 2 + 8 * i;
  std::uint32_t sign_codes;
  std::memcpy(&sign_codes, codes + 4, sizeof(sign_codes));
  alignas(32) std::uint64_t magnitudes[4];
  alignas(32) std::uint64_t signs[4];
  for (unsigned eight = 0; eight < 4; ++eight) {
    magnitudes[eight] = table.magnitudes[codes[eight]];
    signs[eight] = table.signs[(sign_codes >> (7 * eight)) & 127U];
  }
  for (std::size_t k = 0; k < kBlock; k += hn::Lanes(db)) {
    const auto magnitude = hn::Load(db, reinterpret_cast<const std::int8_t*>(magnitudes) + k);
    const auto sign = hn::Load(db, reinterpret_cast<const std::int8_t*>(signs) + k);
    hn::StoreU(hn::Sub(hn::Xor(magnitude, sign), sign), db, levels + k);
  }
}

}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
