// This file is compiled once for every instruction set that Highway knows on this architecture.
#include "device/codec/codec_kernels.h"

#include <cmath>
#include <cstring>

#include "device/codec/codebook.h"
#include "device/codec/f16.h"
#include "device/codec/vector_codec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/codec/codec_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Words = hn::Rebind<std::int32_t, Floats>;
using NarrowBytes = hn::Rebind<std::uint8_t, Words>;

// --- rotation

// Lanes that are the first of their pair become x + swapped, those that are the second swapped - x.
template <class V>
HWY_INLINE V butterfly(V x, V swapped, std::size_t distance) {
  const Floats df;
  const Words dw;
  const auto second =
      hn::Ne(hn::And(hn::Iota(dw, 0), hn::Set(dw, static_cast<int>(distance))), hn::Zero(dw));
  const auto sign = hn::BitCast(df, hn::IfThenElseZero(second, hn::Set(dw, INT32_MIN)));
  return hn::Add(swapped, hn::Xor(x, sign));
}

// The stages whose pairs lie in one register.
template <class V>
HWY_INLINE V inner_stages(V x) {
  const Floats df;
  x = butterfly(x, hn::Shuffle2301(x), 1);
  x = butterfly(x, hn::Shuffle1032(x), 2);
  if constexpr (HWY_MAX_LANES_D(Floats) >= 8) {
    x = butterfly(x, hn::SwapAdjacentBlocks(x), 4);
  }
  if constexpr (HWY_MAX_LANES_D(Floats) >= 16) {
    x = butterfly(x, hn::ConcatLowerUpper(df, x, x), 8);
  }
  return x;
}

void walsh_hadamard(float* HWY_RESTRICT x, std::size_t n) {
  const Floats df;
  const std::size_t lanes = hn::Lanes(df);
  for (std::size_t i = 0; i < n; i += lanes) {
    hn::StoreU(inner_stages(hn::LoadU(df, x + i)), df, x + i);
  }
  for (std::size_t distance = lanes; distance < n; distance *= 2) {
    for (std::size_t start = 0; start < n; start += 2 * distance) {
      for (std::size_t i = start; i < start + distance; i += lanes) {
        const auto a = hn::LoadU(df, x + i);
        const auto b = hn::LoadU(df, x + i + distance);
        hn::StoreU(hn::Add(a, b), df, x + i);
        hn::StoreU(hn::Sub(a, b), df, x + i + distance);
      }
    }
  }
  const auto scale = hn::Set(df, 1.0F / std::sqrt(static_cast<float>(n)));
  for (std::size_t i = 0; i < n; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(df, x + i), scale), df, x + i);
  }
}

void transform(const Rotation& rotation, float* x) {
  for (const int block : rotation.blocks()) {
    walsh_hadamard(x, static_cast<std::size_t>(block));
    x += block;
  }
}

void flip_signs(const Rotation& rotation, float* HWY_RESTRICT x) {
  const Floats df;
  const float* HWY_RESTRICT signs = rotation.signs().data();
  for (std::size_t i = 0; i < rotation.signs().size(); i += hn::Lanes(df)) {
    hn::StoreU(hn::Mul(hn::LoadU(df, x + i), hn::LoadU(df, signs + i)), df, x + i);
  }
}

void Rotate(const Rotation& rotation, float* x) {
  flip_signs(rotation, x);
  transform(rotation, x);
}

void RotateBack(const Rotation& rotation, float* x) {
  transform(rotation, x);
  flip_signs(rotation, x);
}

// y = matrix * x for kVectors vectors and kBlocks registers of rows at once. With so many sums none
// waits for the previous product, and each loaded number is used for several of them.
template <std::size_t kVectors, std::size_t kBlocks>
HWY_INLINE void multiply_panel(const float* HWY_RESTRICT columns, std::size_t dim,
                               const float* HWY_RESTRICT x, float* HWY_RESTRICT y) {
  const Floats df;
  hn::Vec<Floats> sums[kVectors][kBlocks];
  for (auto& vector : sums) {
    for (auto& sum : vector) sum = hn::Zero(df);
  }
  for (std::size_t column = 0; column < dim; ++column) {
    hn::Vec<Floats> rows[kBlocks];
    for (std::size_t b = 0; b < kBlocks; ++b) {
      rows[b] = hn::LoadU(df, columns + column * dim + b * hn::Lanes(df));
    }
    for (std::size_t v = 0; v < kVectors; ++v) {
      const auto number = hn::Set(df, x[v * dim + column]);
      for (std::size_t b = 0; b < kBlocks; ++b) {
        sums[v][b] = hn::MulAdd(rows[b], number, sums[v][b]);
      }
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    for (std::size_t b = 0; b < kBlocks; ++b) {
      hn::StoreU(sums[v][b], df, y + v * dim + b * hn::Lanes(df));
    }
  }
}

template <std::size_t kVectors, std::size_t kBlocks>
HWY_INLINE void multiply_some(const float* columns, std::size_t dim, const float* x, float* y) {
  const std::size_t lanes = hn::Lanes(Floats());
  std::size_t row = 0;
  for (; row + kBlocks * lanes <= dim; row += kBlocks * lanes) {
    multiply_panel<kVectors, kBlocks>(columns + row, dim, x, y + row);
  }
  for (; row < dim; row += lanes) multiply_panel<kVectors, 1>(columns + row, dim, x, y + row);
}

void Multiply(const float* columns, std::size_t dim, const float* x, std::size_t n, float* y) {
  constexpr std::size_t kAtOnce = HWY_MAX_BYTES >= 64 ? 4 : 2;
  for (; n >= kAtOnce; n -= kAtOnce, x += kAtOnce * dim, y += kAtOnce * dim) {
    multiply_some<kAtOnce, 4>(columns, dim, x, y);
  }
  for (; n > 0; --n, x += dim, y += dim) multiply_some<1, 8>(columns, dim, x, y);
}

// --- encoding

template <class V>
HWY_INLINE V finite_or_zero(V x) {
  return hn::IfThenElseZero(hn::IsFinite(x), x);
}

// Measures what the codes of a vector depend on before any of them is known.
VectorStatistics Measure(const float* HWY_RESTRICT x, std::size_t n) {
  const Floats df;
  const hn::Half<Floats> dhalf;
  const hn::Repartition<double, Floats> dd;
  auto peak = hn::Zero(df);
  auto low = hn::Zero(dd);
  auto high = hn::Zero(dd);
  for (std::size_t i = 0; i < n; i += hn::Lanes(df)) {
    const auto value = finite_or_zero(hn::LoadU(df, x + i));
    peak = hn::Max(peak, hn::Abs(value));
    const auto a = hn::PromoteTo(dd, hn::LowerHalf(dhalf, value));
    const auto b = hn::PromoteTo(dd, hn::UpperHalf(dhalf, value));
    low = hn::MulAdd(a, a, low);
    high = hn::MulAdd(b, b, high);
  }
  return {.peak = hn::ReduceMax(df, peak),
          .length = std::sqrt(hn::ReduceSum(dd, hn::Add(low, high)))};
}

void Quantise(int bits, const float* HWY_RESTRICT x, std::size_t n, float gain,
              std::uint8_t* HWY_RESTRICT codes) {
  const Floats df;
  const Words dw;
  const NarrowBytes dn;
  const std::span<const float> borders = thresholds(bits);
  for (std::size_t i = 0; i < n; i += hn::Lanes(df)) {
    const auto y = hn::Mul(finite_or_zero(hn::LoadU(df, x + i)), hn::Set(df, gain));
    auto code = hn::Zero(dw);
    for (const float border : borders) {
      code = hn::Sub(code, hn::VecFromMask(dw, hn::RebindMask(dw, hn::Le(hn::Set(df, border), y))));
    }
    hn::StoreU(hn::DemoteTo(dn, code), dn, codes + i);
  }
}

// The nearest level is within the tolerance if any level is.
bool AreLevels(int bits, const float* HWY_RESTRICT x, std::size_t n, float gain, float tolerance) {
  const Floats df;
  const std::span<const float> levels = centroids(bits);
  for (std::size_t i = 0; i < n; i += hn::Lanes(df)) {
    const auto y = hn::Mul(finite_or_zero(hn::LoadU(df, x + i)), hn::Set(df, gain));
    auto nearest = hn::Abs(hn::Sub(y, hn::Set(df, levels[0])));
    for (const float level : levels.subspan(1)) {
      nearest = hn::Min(nearest, hn::Abs(hn::Sub(y, hn::Set(df, level))));
    }
    if (!hn::AllTrue(df, hn::Le(nearest, hn::Set(df, tolerance)))) return false;
  }
  return true;
}

int SumOfSquares(int bits, const std::uint8_t* HWY_RESTRICT codes, std::size_t n) {
  const hn::CappedTag<std::uint8_t, 16> db;
  const hn::RebindToSigned<decltype(db)> di;
  const hn::RepartitionToWide<decltype(di)> dw;
  const hn::RepartitionToWide<decltype(dw)> dq;
  const auto table =
      hn::LoadDup128(db, reinterpret_cast<const std::uint8_t*>(lookup_table(bits).data()));
  auto sum = hn::Zero(dq);
  for (std::size_t i = 0; i < n; i += hn::Lanes(db)) {
    const auto level = hn::BitCast(di, hn::TableLookupBytes(table, hn::LoadU(db, codes + i)));
    const auto even = hn::PromoteEvenTo(dw, level);
    const auto odd = hn::PromoteOddTo(dw, level);
    sum = hn::Add(sum, hn::Add(hn::WidenMulPairwiseAdd(dq, even, even),
                               hn::WidenMulPairwiseAdd(dq, odd, odd)));
  }
  return hn::ReduceSum(dq, sum);
}

void QuantiseLinear(const float* HWY_RESTRICT x, std::size_t n, float scale,
                    std::uint8_t* HWY_RESTRICT codes) {
  const Floats df;
  const Words dw;
  const NarrowBytes dn;
  for (std::size_t i = 0; i < n; i += hn::Lanes(df)) {
    const auto steps = hn::Div(finite_or_zero(hn::LoadU(df, x + i)), hn::Set(df, scale));
    const auto clamped = hn::Clamp(steps, hn::Set(df, -127.0F), hn::Set(df, 127.0F));
    const auto code = hn::Add(hn::NearestInt(clamped), hn::Set(dw, 128));
    hn::StoreU(hn::DemoteTo(dn, code), dn, codes + i);
  }
}

// The levels that z would be encoded to, as floats.
template <int kBits, class V>
HWY_INLINE V fitted_levels(V z, float scale) {
  const Floats df;
  if constexpr (kBits == 8) {
    const auto steps = hn::Round(hn::Div(z, hn::Set(df, scale)));
    return hn::Clamp(steps, hn::Set(df, -127.0F), hn::Set(df, 127.0F));
  } else {
    const float* HWY_RESTRICT borders = thresholds(kBits).data();
    const std::int8_t* HWY_RESTRICT levels = fitted_i8(kBits).data();
    const auto y = hn::Mul(z, hn::Set(df, 1 / (kFittedUnit * scale)));
    auto level = hn::Set(df, static_cast<float>(levels[0]));
    for (int k = 0; k < (1 << kBits) - 1; ++k) {
      const auto rise = hn::Set(df, static_cast<float>(levels[k + 1] - levels[k]));
      level = hn::Add(level, hn::IfThenElseZero(hn::Le(hn::Set(df, borders[k]), y), rise));
    }
    return level;
  }
}

template <int kBits>
HWY_INLINE double class_error(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT z,
                              std::size_t n, float scale) {
  const Floats df;
  const hn::Half<Floats> dhalf;
  const hn::Repartition<double, Floats> dd;
  auto low = hn::Zero(dd);
  auto high = hn::Zero(dd);
  for (std::size_t i = 0; i < n; i += hn::Lanes(df)) {
    // Class sizes are multiples of 8: the upper half of a register of 16 may hold the next class.
    const auto is_own = hn::FirstN(df, n - i);
    const auto value = hn::IfThenElseZero(is_own, finite_or_zero(hn::LoadU(df, z + i)));
    const auto weight = hn::IfThenElseZero(is_own, hn::LoadU(df, weights + i));
    const auto level = fitted_levels<kBits>(value, scale);
    const auto error = hn::Sub(value, hn::Mul(hn::Set(df, scale), level));
    const auto low_error = hn::PromoteTo(dd, hn::LowerHalf(dhalf, error));
    const auto high_error = hn::PromoteTo(dd, hn::UpperHalf(dhalf, error));
    low = hn::MulAdd(hn::PromoteTo(dd, hn::LowerHalf(dhalf, weight)), hn::Mul(low_error, low_error),
                     low);
    high = hn::MulAdd(hn::PromoteTo(dd, hn::UpperHalf(dhalf, weight)),
                      hn::Mul(high_error, high_error), high);
  }
  return hn::ReduceSum(dd, hn::Add(low, high));
}

double FittedError(const ChannelClasses& classes, const float* weights, const float* z,
                   float scale) {
  double sum = 0;
  for (const auto [bits, n_channels] : classes) {
    const auto n = static_cast<std::size_t>(n_channels);
    switch (bits) {
      case 2: sum += class_error<2>(weights, z, n, scale); break;
      case 3: sum += class_error<3>(weights, z, n, scale); break;
      case 4: sum += class_error<4>(weights, z, n, scale); break;
      default: sum += class_error<8>(weights, z, n, scale); break;
    }
    z += n;
    weights += n;
  }
  return sum;
}

// --- signs

float PutSigns(const float* HWY_RESTRICT x, std::size_t n, std::uint8_t* HWY_RESTRICT bytes,
               std::size_t stride) {
  const Floats df;
  auto squares = hn::Zero(df);
  auto magnitudes = hn::Zero(df);
  for (std::size_t start = 0; start < n; start += kTileTokens) {
    unsigned bits = 0;
    for (std::size_t i = 0; i < kTileTokens; i += hn::Lanes(df)) {
      const auto value = finite_or_zero(hn::LoadU(df, x + start + i));
      squares = hn::MulAdd(value, value, squares);
      magnitudes = hn::Add(magnitudes, hn::Abs(value));
      const auto is_positive = hn::Ge(value, hn::Zero(df));
      bits |= static_cast<unsigned>(hn::BitsFromMask(df, is_positive)) << i;
    }
    bytes[start / 8 * stride] = static_cast<std::uint8_t>(bits);
    bytes[(start / 8 + 1) * stride] = static_cast<std::uint8_t>(bits >> 8U);
  }
  const float magnitude = hn::ReduceSum(df, magnitudes);
  return magnitude == 0 ? 0 : hn::ReduceSum(df, squares) / magnitude;
}

// --- into the tile and out of it

// The distance of a key's words: in a tile they are a group of 64 bytes apart, packed 4 bytes.
constexpr std::size_t kTileStride = 64;
constexpr std::size_t kPackedStride = 4;

// Four consecutive codes of a key lie in the four bytes of a word, at the same bits.
template <int kPlaneBits, std::size_t kStride>
HWY_INLINE void put_key_plane(std::uint8_t* HWY_RESTRICT words,
                              const std::uint8_t* HWY_RESTRICT codes, std::size_t n,
                              unsigned code_shift) {
  constexpr std::size_t kPerWord = 32 / kPlaneBits;
  constexpr std::uint32_t kMask = ((1U << kPlaneBits) - 1U) * 0x01010101U;
  for (std::size_t start = 0; start < n; start += kPerWord) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < kPerWord / 4 && start + 4 * k < n; ++k) {
      std::uint32_t four;
      std::memcpy(&four, codes + start + 4 * k, sizeof(four));
      word |= ((four >> code_shift) & kMask) << (k * kPlaneBits);
    }
    std::memcpy(words + start / kPerWord * kStride, &word, sizeof(word));
  }
}

// The first plane (code_shift 0) sets the codes, the second one adds its bits to them.
template <int kPlaneBits, std::size_t kStride>
HWY_INLINE void get_key_plane(const std::uint8_t* HWY_RESTRICT words,
                              std::uint8_t* HWY_RESTRICT codes, std::size_t n,
                              unsigned code_shift) {
  constexpr std::size_t kPerWord = 32 / kPlaneBits;
  constexpr std::uint32_t kMask = ((1U << kPlaneBits) - 1U) * 0x01010101U;
  for (std::size_t start = 0; start < n; start += kPerWord) {
    std::uint32_t word;
    std::memcpy(&word, words + start / kPerWord * kStride, sizeof(word));
    for (std::size_t k = 0; k < kPerWord / 4 && start + 4 * k < n; ++k) {
      std::uint32_t four = 0;
      if (code_shift != 0) std::memcpy(&four, codes + start + 4 * k, sizeof(four));
      four |= ((word >> (k * kPlaneBits)) & kMask) << code_shift;
      std::memcpy(codes + start + 4 * k, &four, sizeof(four));
    }
  }
}

// The slots of a value tile are channels: for each 16 channels of a token, one field of each of 16
// words is written.
template <int kPlaneBits>
HWY_INLINE void put_value_plane(std::uint8_t* HWY_RESTRICT plane, std::size_t token,
                                const std::uint8_t* HWY_RESTRICT codes, std::size_t n,
                                int code_shift) {
  const Words dw;
  const NarrowBytes dn;
  constexpr std::size_t kPerWord = 32 / kPlaneBits;
  constexpr std::uint32_t kMask = (1U << kPlaneBits) - 1U;
  for (std::size_t block = 0; block < n; block += kTileTokens) {
    const std::size_t position = block + token;
    const std::size_t in_word = position % kPerWord;
    const int shift = static_cast<int>(in_word % 4 * 8 + in_word / 4 * kPlaneBits);
    const auto mask = hn::Set(dw, static_cast<std::int32_t>(kMask << shift));
    for (std::size_t slot = 0; slot < kTileTokens; slot += hn::Lanes(dw)) {
      auto* words = reinterpret_cast<std::int32_t*>(plane + position / kPerWord * 64 + slot * 4);
      const auto code =
          hn::ShiftRightSame(hn::PromoteTo(dw, hn::LoadU(dn, codes + block + slot)), code_shift);
      const auto field = hn::And(hn::ShiftLeftSame(code, shift), mask);
      hn::StoreU(hn::Or(hn::AndNot(mask, hn::LoadU(dw, words)), field), dw, words);
    }
  }
}

template <int kPlaneBits>
HWY_INLINE void get_value_plane(const std::uint8_t* HWY_RESTRICT plane, std::size_t token,
                                std::uint8_t* HWY_RESTRICT codes, std::size_t n, int code_shift) {
  const Words dw;
  const NarrowBytes dn;
  constexpr std::size_t kPerWord = 32 / kPlaneBits;
  const auto mask = hn::Set(dw, (1 << kPlaneBits) - 1);
  for (std::size_t block = 0; block < n; block += kTileTokens) {
    const std::size_t position = block + token;
    const std::size_t in_word = position % kPerWord;
    const int shift = static_cast<int>(in_word % 4 * 8 + in_word / 4 * kPlaneBits);
    for (std::size_t slot = 0; slot < kTileTokens; slot += hn::Lanes(dw)) {
      const auto* words =
          reinterpret_cast<const std::int32_t*>(plane + position / kPerWord * 64 + slot * 4);
      // The mask removes the sign bits that the shift brings in.
      const auto field = hn::And(hn::ShiftRightSame(hn::LoadU(dw, words), shift), mask);
      auto code = hn::DemoteTo(dn, hn::ShiftLeftSame(field, code_shift));
      if (code_shift != 0) code = hn::Or(code, hn::LoadU(dn, codes + block + slot));
      hn::StoreU(code, dn, codes + block + slot);
    }
  }
}

template <std::size_t kStride>
HWY_INLINE void put_key(int bits, std::uint8_t* words, const std::uint8_t* codes, std::size_t n) {
  switch (bits) {
    case 2: put_key_plane<2, kStride>(words, codes, n, 0); break;
    case 3:
      put_key_plane<2, kStride>(words, codes, n, 0);
      words += plane_bytes(2, static_cast<int>(n)) / 64 * kStride;
      put_key_plane<1, kStride>(words, codes, n, 2);
      break;
    case 4: put_key_plane<4, kStride>(words, codes, n, 0); break;
    default: put_key_plane<8, kStride>(words, codes, n, 0); break;
  }
}

template <std::size_t kStride>
HWY_INLINE void get_key(int bits, const std::uint8_t* words, std::uint8_t* codes, std::size_t n) {
  switch (bits) {
    case 2: get_key_plane<2, kStride>(words, codes, n, 0); break;
    case 3:
      get_key_plane<2, kStride>(words, codes, n, 0);
      words += plane_bytes(2, static_cast<int>(n)) / 64 * kStride;
      get_key_plane<1, kStride>(words, codes, n, 2);
      break;
    case 4: get_key_plane<4, kStride>(words, codes, n, 0); break;
    default: get_key_plane<8, kStride>(words, codes, n, 0); break;
  }
}

template <typename Bytes>
Bytes* next_class(Bytes* tile, const ChannelClass& one) {
  return tile + tile_code_bytes(one.bits, one.n_channels);
}

void PutKey(const ChannelClasses& classes, std::uint8_t* tile, std::size_t token,
            const std::uint8_t* codes) {
  for (const ChannelClass& one : classes) {
    put_key<kTileStride>(one.bits, tile + token * 4, codes,
                         static_cast<std::size_t>(one.n_channels));
    tile = next_class(tile, one);
    codes += one.n_channels;
  }
}

void GetKey(const ChannelClasses& classes, const std::uint8_t* tile, std::size_t token,
            std::uint8_t* codes) {
  for (const ChannelClass& one : classes) {
    get_key<kTileStride>(one.bits, tile + token * 4, codes,
                         static_cast<std::size_t>(one.n_channels));
    tile = next_class(tile, one);
    codes += one.n_channels;
  }
}

void PutValue(int bits, std::uint8_t* tile, std::size_t token, const std::uint8_t* codes,
              std::size_t n) {
  std::uint8_t* high = tile + plane_bytes(2, static_cast<int>(n));  // of three bits
  switch (bits) {
    case 2: put_value_plane<2>(tile, token, codes, n, 0); break;
    case 3:
      put_value_plane<2>(tile, token, codes, n, 0);
      put_value_plane<1>(high, token, codes, n, 2);
      break;
    case 4: put_value_plane<4>(tile, token, codes, n, 0); break;
    default: put_value_plane<8>(tile, token, codes, n, 0); break;
  }
}

void GetValue(int bits, const std::uint8_t* tile, std::size_t token, std::uint8_t* codes,
              std::size_t n) {
  const std::uint8_t* high = tile + plane_bytes(2, static_cast<int>(n));  // of three bits
  switch (bits) {
    case 2: get_value_plane<2>(tile, token, codes, n, 0); break;
    case 3:
      get_value_plane<2>(tile, token, codes, n, 0);
      get_value_plane<1>(high, token, codes, n, 2);
      break;
    case 4: get_value_plane<4>(tile, token, codes, n, 0); break;
    default: get_value_plane<8>(tile, token, codes, n, 0); break;
  }
}

// Take and place copy the words of a key unchanged. A value is unpacked to codes and packed again
// like a key.
void TakeKey(const std::uint8_t* HWY_RESTRICT tile, std::size_t token,
             std::uint8_t* HWY_RESTRICT packed, std::size_t n_words) {
  for (std::size_t i = 0; i < n_words; ++i) {
    std::memcpy(packed + i * kPackedStride, tile + i * kTileStride + token * 4, kPackedStride);
  }
}

void PlaceKey(std::uint8_t* HWY_RESTRICT tile, std::size_t token,
              const std::uint8_t* HWY_RESTRICT packed, std::size_t n_words) {
  for (std::size_t i = 0; i < n_words; ++i) {
    std::memcpy(tile + i * kTileStride + token * 4, packed + i * kPackedStride, kPackedStride);
  }
}

void TakeValue(int bits, const std::uint8_t* tile, std::size_t token, std::uint8_t* packed,
               std::size_t n) {
  std::uint8_t codes[kHeadDimMax];
  GetValue(bits, tile, token, codes, n);
  put_key<kPackedStride>(bits, packed, codes, n);
}

void PlaceValue(int bits, std::uint8_t* tile, std::size_t token, const std::uint8_t* packed,
                std::size_t n) {
  std::uint8_t codes[kHeadDimMax];
  get_key<kPackedStride>(bits, packed, codes, n);
  PutValue(bits, tile, token, codes, n);
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(Rotate);
HWY_EXPORT(RotateBack);
HWY_EXPORT(Measure);
HWY_EXPORT(Quantise);
HWY_EXPORT(AreLevels);
HWY_EXPORT(SumOfSquares);
HWY_EXPORT(QuantiseLinear);
HWY_EXPORT(FittedError);
HWY_EXPORT(Multiply);
HWY_EXPORT(PutSigns);
HWY_EXPORT(PutKey);
HWY_EXPORT(GetKey);
HWY_EXPORT(TakeKey);
HWY_EXPORT(PlaceKey);
HWY_EXPORT(PutValue);
HWY_EXPORT(GetValue);
HWY_EXPORT(TakeValue);
HWY_EXPORT(PlaceValue);

void rotate_fast(const Rotation& rotation, std::span<float> x) {
  HWY_DYNAMIC_DISPATCH(Rotate)(rotation, x.data());
}

void rotate_back_fast(const Rotation& rotation, std::span<float> x) {
  HWY_DYNAMIC_DISPATCH(RotateBack)(rotation, x.data());
}

void multiply_fast(std::span<const float> columns, std::size_t dim, std::span<const float> x,
                   std::span<float> y) {
  HWY_DYNAMIC_DISPATCH(Multiply)(columns.data(), dim, x.data(), x.size() / dim, y.data());
}

namespace {

constexpr EncodeSteps kFastSteps{
    .measure =
        [](std::span<const float> x) { return HWY_DYNAMIC_DISPATCH(Measure)(x.data(), x.size()); },
    .quantise =
        [](int n_bits, std::span<const float> x, float gain, std::span<std::uint8_t> out) {
          HWY_DYNAMIC_DISPATCH(Quantise)(n_bits, x.data(), x.size(), gain, out.data());
        },
    .are_levels =
        [](int n_bits, std::span<const float> x, float gain, float tolerance) {
          return HWY_DYNAMIC_DISPATCH(AreLevels)(n_bits, x.data(), x.size(), gain, tolerance);
        },
    .sum_of_squares =
        [](int n_bits, std::span<const std::uint8_t> in) {
          return HWY_DYNAMIC_DISPATCH(SumOfSquares)(n_bits, in.data(), in.size());
        },
    .quantise_linear =
        [](std::span<const float> x, float scale, std::span<std::uint8_t> out) {
          HWY_DYNAMIC_DISPATCH(QuantiseLinear)(x.data(), x.size(), scale, out.data());
        },
    .fitted_error =
        [](const ChannelClasses& classes, std::span<const float> weights, std::span<const float> z,
           float scale) {
          return HWY_DYNAMIC_DISPATCH(FittedError)(classes, weights.data(), z.data(), scale);
        }};

}  // namespace

std::uint16_t encode_fast(int bits, std::span<const float> rotated, std::span<std::uint8_t> codes) {
  return encode_with(kFastSteps, bits, rotated, codes);
}

// Kernels write up to the end of a register, which may reach into the next class. That is harmless:
// the next class is encoded afterwards, and the last class ends at the end of a register.
std::uint16_t encode_fitted_fast(const ChannelClasses& classes, std::span<const float> weights,
                                 std::span<const float> z, std::span<std::uint8_t> codes) {
  return encode_fitted_with(kFastSteps, classes, weights, z, codes);
}

float put_signs_fast(std::span<const float> x, std::uint8_t* bytes, std::size_t stride) {
  return HWY_DYNAMIC_DISPATCH(PutSigns)(x.data(), x.size(), bytes, stride);
}

void put_fast(const TileLayout& layout, std::span<std::uint8_t> tile, int token,
              std::span<const std::uint8_t> codes) {
  const auto t = static_cast<std::size_t>(token);
  if (layout.side() == Side::kKey) {
    HWY_DYNAMIC_DISPATCH(PutKey)(layout.classes(), tile.data(), t, codes.data());
  } else {
    HWY_DYNAMIC_DISPATCH(PutValue)
    (layout.classes().all[0].bits, tile.data(), t, codes.data(), codes.size());
  }
}

void get_fast(const TileLayout& layout, std::span<const std::uint8_t> tile, int token,
              std::span<std::uint8_t> codes) {
  const auto t = static_cast<std::size_t>(token);
  if (layout.side() == Side::kKey) {
    HWY_DYNAMIC_DISPATCH(GetKey)(layout.classes(), tile.data(), t, codes.data());
  } else {
    HWY_DYNAMIC_DISPATCH(GetValue)
    (layout.classes().all[0].bits, tile.data(), t, codes.data(), codes.size());
  }
}

void take_fast(const TileLayout& layout, std::span<const std::uint8_t> tile, int token,
               std::span<std::uint8_t> packed) {
  const auto t = static_cast<std::size_t>(token);
  if (layout.side() == Side::kKey) {
    HWY_DYNAMIC_DISPATCH(TakeKey)(tile.data(), t, packed.data(), packed.size() / 4);
  } else {
    HWY_DYNAMIC_DISPATCH(TakeValue)
    (layout.classes().all[0].bits, tile.data(), t, packed.data(),
     static_cast<std::size_t>(layout.head_dim()));
  }
}

void place_fast(const TileLayout& layout, std::span<std::uint8_t> tile, int token,
                std::span<const std::uint8_t> packed) {
  const auto t = static_cast<std::size_t>(token);
  if (layout.side() == Side::kKey) {
    HWY_DYNAMIC_DISPATCH(PlaceKey)(tile.data(), t, packed.data(), packed.size() / 4);
  } else {
    HWY_DYNAMIC_DISPATCH(PlaceValue)
    (layout.classes().all[0].bits, tile.data(), t, packed.data(),
     static_cast<std::size_t>(layout.head_dim()));
  }
}

}  // namespace slipstream::turbo
#endif
