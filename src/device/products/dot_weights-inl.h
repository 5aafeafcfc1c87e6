// Weights of each type as dot_kernels.cpp multiplies them: bytes in its order, and scales.
//
// Included once for every instruction set, inside its namespace. Nothing else includes it.
//
// Threads: thread-safe. Errors: none.
#if defined(SLIPSTREAM_DEVICE_DOT_WEIGHTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLIPSTREAM_DEVICE_DOT_WEIGHTS_INL_H_
#undef SLIPSTREAM_DEVICE_DOT_WEIGHTS_INL_H_
#else
#define SLIPSTREAM_DEVICE_DOT_WEIGHTS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "device/products/weight_blocks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::CappedTag<std::uint8_t, 64>;
using Signed = hn::Repartition<std::int8_t, Bytes>;
using Shorts = hn::Repartition<std::int16_t, Bytes>;
using Words = hn::Repartition<std::int32_t, Bytes>;
using Bits = hn::Repartition<std::uint32_t, Bytes>;
using Floats = hn::Repartition<float, Bytes>;
using Eight = hn::CappedTag<float, 8>;  // factors of blocks; or four of them

constexpr std::size_t kVectorBytes = hn::MaxLanes(Bytes());
constexpr std::size_t kParts = 64 / kVectorBytes;  // vectors of 64 bytes
constexpr std::size_t kFloats = hn::MaxLanes(Floats());
constexpr std::size_t kBlocks = 8;  // of a piece

// How bytes are multiplied. Without VNNI x86 has products whose pairs must fit into 16 bits: bytes
// of weights are below 64, or their signs are moved to the column. Elsewhere both operands are
// signed.
constexpr bool kHasVnni = HWY_TARGET <= HWY_AVX3_DL;
constexpr bool kHasPairs = HWY_ARCH_X86 && !kHasVnni;

// 64 bytes.
struct Lines {
  hn::Vec<Bytes> parts[kParts];
};

// Two halves of four blocks.
struct Halves {
  Lines first;
  Lines second;
};

// The bytes of a piece, as DotColumn has its numbers.
struct Piece {
  Lines quarters[4];
};

// --- bytes of weights

#if HWY_MAX_BYTES >= 64
// Blocks of 128 bits: two of `a`, two of `b`. Highway has no name for this shuffle.
template <int kPattern>
HWY_INLINE hn::Vec<Bytes> pick_blocks(hn::Vec<Bytes> a, hn::Vec<Bytes> b) {
  return hn::Vec<Bytes>{_mm512_shuffle_i64x2(a.raw, b.raw, kPattern)};
}
#endif

// Sixteen bytes of each of four places.
template <std::size_t kStride>
HWY_INLINE Lines load_groups(const std::uint8_t* from) {
  const hn::FixedTag<std::uint8_t, 16> d16;
  Lines lines;
#if HWY_MAX_BYTES >= 64
  const hn::FixedTag<std::uint8_t, 32> d32;
  lines.parts[0] = hn::Combine(
      Bytes(),
      hn::Combine(d32, hn::LoadU(d16, from + 3 * kStride), hn::LoadU(d16, from + 2 * kStride)),
      hn::Combine(d32, hn::LoadU(d16, from + kStride), hn::LoadU(d16, from)));
#elif HWY_MAX_BYTES == 32
  lines.parts[0] = hn::Combine(Bytes(), hn::LoadU(d16, from + kStride), hn::LoadU(d16, from));
  lines.parts[1] =
      hn::Combine(Bytes(), hn::LoadU(d16, from + 3 * kStride), hn::LoadU(d16, from + 2 * kStride));
#else
  for (std::size_t i = 0; i < 4; ++i) lines.parts[i] = hn::LoadU(d16, from + i * kStride);
#endif
  return lines;
}

// Thirty-two bytes of each of four places, divided into halves.
template <std::size_t kStride>
HWY_INLINE Halves load_halves(const std::uint8_t* from) {
#if HWY_MAX_BYTES >= 64
  const hn::FixedTag<std::uint8_t, 32> d32;
  const Bytes db;
  const auto load_two = [&](const std::uint8_t* two) HWY_ATTR {
    if constexpr (kStride == 32) return hn::LoadU(db, two);
    return hn::Combine(db, hn::LoadU(d32, two + kStride), hn::LoadU(d32, two));
  };
  const auto low = load_two(from);
  const auto high = load_two(from + 2 * kStride);
  return {.first = {{pick_blocks<0x88>(low, high)}}, .second = {{pick_blocks<0xDD>(low, high)}}};
#else
  return {.first = load_groups<kStride>(from), .second = load_groups<kStride>(from + 16)};
#endif
}

// Sixteen bytes of each of two places, each twice.
HWY_INLINE Lines load_twice(const std::uint8_t* first, const std::uint8_t* second) {
  Lines lines;
#if HWY_MAX_BYTES >= 64
  const hn::FixedTag<std::uint8_t, 32> d32;
  lines.parts[0] = hn::Combine(Bytes(), hn::LoadDup128(d32, second), hn::LoadDup128(d32, first));
#else
  for (std::size_t part = 0; part < kParts; ++part) {
    lines.parts[part] = hn::LoadDup128(Bytes(), 2 * part < kParts ? first : second);
  }
#endif
  return lines;
}

template <class Function>
HWY_INLINE Lines each_part(const Lines& lines, const Function& function) {
  Lines result;
  for (std::size_t part = 0; part < kParts; ++part) {
    result.parts[part] = function(lines.parts[part], part);
  }
  return result;
}

HWY_INLINE Lines low_nibbles(const Lines& lines) {
  return each_part(lines, [](auto bytes, std::size_t) HWY_ATTR {
    return hn::And(bytes, hn::Set(Bytes(), std::uint8_t{15}));
  });
}

HWY_INLINE Lines high_nibbles(const Lines& lines) {
  return each_part(lines,
                   [](auto bytes, std::size_t) HWY_ATTR { return hn::ShiftRight<4>(bytes); });
}

// Quarters of eight blocks, of halves of the even and of the odd ones.
HWY_INLINE void put_quarters(const Lines& even, const Lines& odd, Lines* quarters) {
  const hn::Repartition<std::uint64_t, Bytes> dd;
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto a = hn::BitCast(dd, even.parts[part]);
    const auto b = hn::BitCast(dd, odd.parts[part]);
    quarters[0].parts[part] = hn::BitCast(Bytes(), hn::InterleaveLower(dd, a, b));
    quarters[1].parts[part] = hn::BitCast(Bytes(), hn::InterleaveUpper(dd, a, b));
  }
}

HWY_INLINE Piece piece_of(const Halves& even, const Halves& odd) {
  Piece piece;
  put_quarters(even.first, odd.first, piece.quarters);
  put_quarters(even.second, odd.second, piece.quarters + 2);
  return piece;
}

// Four numbers for every group, the same in its four words.
template <unsigned k0, unsigned k1, unsigned k2, unsigned k3>
HWY_INLINE hn::Vec<Bits> words_of_groups(std::size_t part) {
  alignas(64) static constexpr std::uint32_t kWords[16] = {k0, k0, k0, k0, k1, k1, k1, k1,
                                                           k2, k2, k2, k2, k3, k3, k3, k3};
  return hn::Load(Bits(), kWords + part * kFloats);
}

// Bytes of signed weights as they are multiplied.
HWY_INLINE Piece from_signed(Piece piece) {
  if constexpr (kHasVnni) {
    for (Lines& lines : piece.quarters) {
      lines = each_part(lines, [](auto bytes, std::size_t) HWY_ATTR {
        return hn::Xor(bytes, hn::Set(Bytes(), std::uint8_t{128}));
      });
    }
  }
  return piece;
}

// --- scales

template <class D>
HWY_INLINE hn::Vec<D> half_at(D df, const std::uint8_t* bytes) {
  const hn::Rebind<hwy::float16_t, D> dh;
  hwy::float16_t half;
  std::memcpy(&half, bytes, sizeof(half));
  return hn::PromoteTo(df, hn::Set(dh, half));
}

// scales[i] = numbers[i] * factor
template <std::size_t kCount, class D, class T>
HWY_INLINE void store_scaled(D df, const T* numbers, hn::Vec<D> factor, float* scales) {
  const hn::Rebind<T, D> dn;
  const hn::Rebind<std::int32_t, D> dw;
  for (std::size_t i = 0; i < kCount; i += hn::Lanes(df)) {
    const auto words = hn::PromoteTo(dw, hn::LoadU(dn, numbers + i));
    hn::Store(hn::Mul(hn::ConvertTo(df, words), factor), df, scales + i);
  }
}

// The f16 scales of eight blocks, kBytes apart.
template <std::size_t kBytes>
HWY_INLINE auto load_halfs(const std::uint8_t* blocks) {
  const hn::FixedTag<hwy::float16_t, 8> dh;
#if HWY_TARGET <= HWY_AVX3_DL
  // As many as 64 bytes have at a time. Highway has no shuffle of bytes that leaves some as they are.
  constexpr std::size_t kAtOnce = kBytes <= 20 ? 4 : 2;
  static_assert((kAtOnce - 1) * kBytes + 2 <= 64 && kAtOnce * kBytes >= 64);
  alignas(64) static constexpr auto kPlaces = [] {
    std::array<std::uint8_t, 64> places{};
    for (std::size_t i = 0; i < 2 * kBlocks; ++i) {
      places[i] = static_cast<std::uint8_t>(i / 2 % kAtOnce * kBytes + i % 2);
    }
    return places;
  }();
  const auto places = hn::Load(Bytes(), kPlaces.data());
  auto halfs = hn::Zero(Bytes());
  for (std::size_t i = 0; i < kBlocks; i += kAtOnce) {
    const auto some = hn::LoadU(Bytes(), blocks + i * kBytes);
    const auto mask = static_cast<__mmask64>((std::uint64_t{1} << (2 * kAtOnce)) - 1) << (2 * i);
    halfs = hn::Vec<Bytes>{_mm512_mask_permutexvar_epi8(halfs.raw, mask, places.raw, some.raw)};
  }
  return hn::ResizeBitCast(dh, halfs);
#else
  const auto half = [&](std::size_t i) HWY_ATTR {
    std::uint16_t bits = 0;
    std::memcpy(&bits, blocks + i * kBytes, sizeof(bits));
    std::uint64_t word = bits;
    // Stays out of vectors: the compiler would gather with shuffles, which are the bound.
    __asm__("" : "+r"(word));
    return word;
  };
  const auto four = [&](std::size_t i) HWY_ATTR {
    return half(i) | half(i + 1) << 16U | half(i + 2) << 32U | half(i + 3) << 48U;
  };
  return hn::BitCast(dh,
                     hn::Dup128VecFromValues(hn::FixedTag<std::uint64_t, 2>(), four(0), four(4)));
#endif
}

template <std::size_t kBytes>
HWY_INLINE void store_halfs(const std::uint8_t* blocks, float* scales) {
  const auto halfs = load_halfs<kBytes>(blocks);
#if HWY_MAX_BYTES >= 32
  hn::Store(hn::PromoteTo(Eight(), halfs), Eight(), scales);
#else
  hn::Store(hn::PromoteLowerTo(Eight(), halfs), Eight(), scales);
  hn::Store(hn::PromoteUpperTo(Eight(), halfs), Eight(), scales + 4);
#endif
}

// The f16 scale and minimum of Q4_K: what eight scales, and eight minima, are multiplied with.
HWY_INLINE hn::Vec<Floats> factors_q4_k(const std::uint8_t* block, std::size_t i) {
  const Floats df;
#if HWY_MAX_BYTES >= 64
  (void)i;
  const hn::FixedTag<float, 4> d4;  // two of them are something else
  const hn::Rebind<hwy::float16_t, decltype(d4)> dh;
  const auto both =
      hn::PromoteTo(d4, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(block)));
  const auto idx = hn::IndicesFromVec(df, hn::ShiftRight<3>(hn::Iota(Words(), 0)));
  return hn::TableLookupLanes(hn::ResizeBitCast(df, both), idx);
#else
  return half_at(df, block + (i < kBlocks ? 0 : 2));
#endif
}

// Eight scales and minima of 6 bits in 12 bytes.
HWY_INLINE void store_scales_q4_k(const std::uint8_t* block, float* scales) {
  std::uint32_t words[3];
  std::memcpy(words, block + 4, sizeof(words));
  constexpr std::uint32_t kSix = 0x3F3F3F3F;
  constexpr std::uint32_t kFour = 0x0F0F0F0F;
  constexpr std::uint32_t kHighTwo = 0x30303030;
  const std::uint64_t last_scales = (words[2] & kFour) | ((words[0] >> 2U) & kHighTwo);
  const std::uint64_t last_minimums = ((words[2] >> 4U) & kFour) | ((words[1] >> 2U) & kHighTwo);
  alignas(16) const std::uint64_t sixteen[2] = {(words[0] & kSix) | last_scales << 32U,
                                                (words[1] & kSix) | last_minimums << 32U};
  const Floats df;
  for (std::size_t i = 0; i < 2 * kBlocks; i += kFloats) {
    store_scaled<kFloats>(df, reinterpret_cast<const std::uint8_t*>(sixteen) + i,
                          factors_q4_k(block, i), scales + i);
  }
}

// --- types

// Of each type: the bytes of 256 weights; those bytes as they are multiplied; what is added to
// weights; and scales. A weight is scale * (byte - what was added), or scale * byte - minimum.
// Minima are behind eight scales.
enum class Added { kToSigned, kToQ4_0, kToQ6K, kMinimums };

struct Q8_0 {
  static constexpr std::size_t kBytes = kBlocks * kQ8_0Bytes;
  static constexpr Added kAdded = Added::kToSigned;
  static HWY_INLINE void scales(const std::uint8_t* blocks, float* scales) {
    store_halfs<kQ8_0Bytes>(blocks, scales);
  }
  static HWY_INLINE Piece weights(const std::uint8_t* blocks) {
    return from_signed(piece_of(load_halves<2 * kQ8_0Bytes>(blocks + 2),
                                load_halves<2 * kQ8_0Bytes>(blocks + kQ8_0Bytes + 2)));
  }
};

#if HWY_TARGET <= HWY_AVX3_DL
// Eight bytes of each of eight blocks of 16 bytes, kBlockBytes apart, from the byte kFrom of each.
// Highway has no shuffle of bytes that leaves some as they are.
template <std::size_t kBlockBytes, std::size_t kFrom>
HWY_INLINE hn::Vec<Bytes> load_quarters(const std::uint8_t* blocks) {
  // Those of four blocks are within 64 bytes. Nothing behind the last block is read.
  static_assert(3 * kBlockBytes + 8 <= 64);
  constexpr std::size_t kLastFour =
      std::min(kFrom + 4 * kBlockBytes, 7 * kBlockBytes + 16 - std::size_t{64});
  alignas(64) static constexpr auto kPlaces = [] {
    std::array<std::uint8_t, 64> places{};
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::size_t load = i < 32 ? kFrom : kLastFour;
      places[i] = static_cast<std::uint8_t>(kFrom + i / 8 * kBlockBytes + i % 8 - load);
    }
    return places;
  }();
  const auto places = hn::Load(Bytes(), kPlaces.data());
  const auto four = hn::LoadU(Bytes(), blocks + kFrom);
  const auto last_four = hn::LoadU(Bytes(), blocks + kLastFour);
  return hn::Vec<Bytes>{_mm512_mask_permutexvar_epi8(_mm512_permutexvar_epi8(places.raw, four.raw),
                                                     __mmask64{0xFFFFFFFF00000000}, places.raw,
                                                     last_four.raw)};
}
#endif

// Eight blocks whose first halves are low nibbles and whose second halves are high ones.
template <std::size_t kBlockBytes>
HWY_INLINE Piece load_nibbles(const std::uint8_t* blocks) {
  Lines both[2];
#if HWY_TARGET <= HWY_AVX3_DL
  both[0].parts[0] = load_quarters<kBlockBytes, 0>(blocks);
  both[1].parts[0] = load_quarters<kBlockBytes, 8>(blocks);
#else
  put_quarters(load_groups<2 * kBlockBytes>(blocks),
               load_groups<2 * kBlockBytes>(blocks + kBlockBytes), both);
#endif
  return {
      {low_nibbles(both[0]), low_nibbles(both[1]), high_nibbles(both[0]), high_nibbles(both[1])}};
}

struct Q4_0 {
  static constexpr std::size_t kBytes = kBlocks * kQ4_0Bytes;
  static constexpr Added kAdded = Added::kToQ4_0;
  static HWY_INLINE void scales(const std::uint8_t* blocks, float* scales) {
    store_halfs<kQ4_0Bytes>(blocks, scales);
  }
  static HWY_INLINE Piece weights(const std::uint8_t* blocks) {
    return load_nibbles<kQ4_0Bytes>(blocks + 2);
  }
};

struct Q4K {
  static constexpr std::size_t kBytes = kQ4KBytes;
  static constexpr Added kAdded = Added::kMinimums;
  static HWY_INLINE void scales(const std::uint8_t* block, float* scales) {
    store_scales_q4_k(block, scales);
  }
  static HWY_INLINE Piece weights(const std::uint8_t* block) {
    const Halves both = load_halves<32>(block + 16);
    return piece_of({.first = low_nibbles(both.first), .second = low_nibbles(both.second)},
                    {.first = high_nibbles(both.first), .second = high_nibbles(both.second)});
  }
};

struct Q5K {
  static constexpr std::size_t kBytes = kQ5KBytes;
  static constexpr Added kAdded = Added::kMinimums;
  static HWY_INLINE void scales(const std::uint8_t* block, float* scales) {
    store_scales_q4_k(block, scales);
  }
  // Bit 2 * i + kOdd of a byte becomes bit 4 of group i.
  template <std::size_t kOdd>
  static HWY_INLINE Lines with_fifth(const Lines& nibbles, const std::uint8_t* fifth_bits) {
    const Lines bits = load_twice(fifth_bits, fifth_bits);
    return each_part(nibbles, [&](auto bytes, std::size_t part) HWY_ATTR {
      const auto turns = words_of_groups<(28 + kOdd) % 32, (30 + kOdd) % 32, kOdd, 2 + kOdd>(part);
      const auto turned =
          hn::BitCast(Bytes(), hn::Ror(hn::BitCast(Bits(), bits.parts[part]), turns));
      return hn::Or(bytes, hn::And(turned, hn::Set(Bytes(), std::uint8_t{16})));
    });
  }
  static HWY_INLINE Piece weights(const std::uint8_t* block) {
    const Halves both = load_halves<32>(block + 48);
    return piece_of({.first = with_fifth<0>(low_nibbles(both.first), block + 16),
                     .second = with_fifth<0>(low_nibbles(both.second), block + 32)},
                    {.first = with_fifth<1>(high_nibbles(both.first), block + 16),
                     .second = with_fifth<1>(high_nibbles(both.second), block + 32)});
  }
};

struct Q6K {
  static constexpr std::size_t kBytes = kQ6KBytes;
  static constexpr Added kAdded = Added::kToQ6K;
  // Sixteen: each half of a block has its own.
  static HWY_INLINE void scales(const std::uint8_t* block, float* scales) {
    const Floats df;
    store_scaled<2 * kBlocks>(df, reinterpret_cast<const std::int8_t*>(block + 192),
                              half_at(df, block + 208), scales);
  }
  // Nibbles of blocks 0 and 1 are low, of 2 and 3 high, as are the next four. Two higher bits of
  // all four are in one byte.
  template <std::size_t kOdd>
  static HWY_INLINE Lines half(const std::uint8_t* low_bits, const std::uint8_t* high_bits) {
    const Lines low = load_twice(low_bits + 32 * kOdd, low_bits + 64 + 32 * kOdd);
    const Lines high = load_twice(high_bits, high_bits + 32);
    return each_part(low, [&](auto bytes, std::size_t part) HWY_ATTR {
      const auto turns =
          words_of_groups<(28 + 2 * kOdd) % 32, 2 * kOdd, (28 + 2 * kOdd) % 32, 2 * kOdd>(part);
      const auto nibbles = hn::BitCast(
          Bytes(), hn::Shr(hn::BitCast(Bits(), bytes), words_of_groups<0, 4, 0, 4>(part)));
      const auto turned =
          hn::BitCast(Bytes(), hn::Ror(hn::BitCast(Bits(), high.parts[part]), turns));
      return hn::Or(hn::And(nibbles, hn::Set(Bytes(), std::uint8_t{15})),
                    hn::And(turned, hn::Set(Bytes(), std::uint8_t{48})));
    });
  }
  static HWY_INLINE Piece weights(const std::uint8_t* block) {
    return piece_of(
        {.first = half<0>(block, block + 128), .second = half<0>(block + 16, block + 144)},
        {.first = half<1>(block, block + 128), .second = half<1>(block + 16, block + 144)});
  }
};

struct Iq4Xs {
  static constexpr std::size_t kBytes = kIq4XsBytes;
  static constexpr Added kAdded = Added::kToSigned;
  static HWY_INLINE void scales(const std::uint8_t* block, float* scales) {
    std::uint16_t high_bits = 0;
    std::uint32_t low_bits = 0;
    std::memcpy(&high_bits, block + 2, sizeof(high_bits));
    std::memcpy(&low_bits, block + 4, sizeof(low_bits));
    // Eight nibbles, and eight times two bits, each to a byte.
    std::uint64_t low = low_bits;
    low = (low | low << 16U) & 0x0000FFFF0000FFFF;
    low = (low | low << 8U) & 0x00FF00FF00FF00FF;
    low = (low | low << 4U) & 0x0F0F0F0F0F0F0F0F;
    std::uint64_t high = high_bits;
    high = (high | high << 24U) & 0x000000FF000000FF;
    high = (high | high << 12U) & 0x000F000F000F000F;
    high = (high | high << 6U) & 0x0303030303030303;
    // Minus 32: plus 96 carries nowhere, and the highest bit is the sign.
    const std::uint64_t numbers = ((low | high << 4U) + 0x6060606060606060) ^ 0x8080808080808080;
    const Eight df;
    store_scaled<kBlocks>(df, reinterpret_cast<const std::int8_t*>(&numbers), half_at(df, block),
                          scales);
  }
  static HWY_INLINE Piece weights(const std::uint8_t* block) {
    const auto table = hn::LoadDup128(Signed(), kIq4Levels);
    Piece piece = load_nibbles<16>(block + 8);
    for (Lines& lines : piece.quarters) {
      lines = each_part(lines, [&](auto bytes, std::size_t) HWY_ATTR {
        return hn::BitCast(Bytes(), hn::TableLookupBytes(table, hn::BitCast(Signed(), bytes)));
      });
    }
    return from_signed(piece);
  }
};

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
