// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/attention/sign_kernels.h"

#include <algorithm>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/attention/sign_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of at most 16 lanes of 32 bits: the slots of a tile fill one, two or four registers.
using SignFloats = hn::CappedTag<float, kTileTokens>;
using SignWords = hn::Rebind<std::int32_t, SignFloats>;
using SignBytes = hn::Repartition<std::uint8_t, SignWords>;
using SignDigits = hn::Repartition<std::int8_t, SignWords>;
using SignHalfs = hn::Rebind<hwy::float16_t, SignFloats>;

constexpr std::size_t kSignGroupBytes = 64;
constexpr std::size_t kSignSlots = kTileTokens;
constexpr std::size_t kQuadsOfWord = 8;  // a word has 32 channels
// How far ahead signs are fetched: two chunks of heads of 128.
constexpr std::size_t kSignsAhead = 2048;

// A bit stays where it is in its byte: with bit k, products are 2^k times as large. Each k has its
// own sum, which is shifted at the end, so that there is one instruction for the bits of four
// channels and one for their products.
template <int kRows>
HWY_INLINE void sign_dots_of_tile(const DotRows& work, const std::uint8_t* HWY_RESTRICT tile,
                                  const std::int8_t* HWY_RESTRICT rows,
                                  std::int32_t* HWY_RESTRICT dots) {
  const SignWords dw;
  const SignBytes db;
  const SignDigits di;
  const auto n_quads = static_cast<std::size_t>(work.n_channels) / 4;
  for (std::size_t slot = 0; slot < kSignSlots; slot += hn::Lanes(dw)) {
    hn::Vec<SignWords> sums[kRows][kQuadsOfWord];
    for (auto& row : sums) {
      for (auto& sum : row) sum = hn::Zero(dw);
    }
    for (std::size_t quad = 0; quad < n_quads; quad += kQuadsOfWord) {
      const std::uint8_t* HWY_RESTRICT group = tile + quad / kQuadsOfWord * kSignGroupBytes;
      if (slot == 0) __builtin_prefetch(group + kSignsAhead);
      const auto bits = hn::LoadU(db, group + slot * 4);
      // A head of 80 ends in the middle of a word; the digits behind it are zeroes.
      for (std::size_t k = 0; k < kQuadsOfWord; ++k) {
        const auto ones = hn::And(bits, hn::Set(db, static_cast<std::uint8_t>(1U << k)));
        for (std::size_t r = 0; r < kRows; ++r) {
          std::int32_t digits;
          std::memcpy(&digits, rows + r * work.row_stride + (quad + k) * 4, sizeof(digits));
          sums[r][k] = hn::SumOfMulQuadAccumulate(dw, ones, hn::BitCast(di, hn::Set(dw, digits)),
                                                  sums[r][k]);
        }
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      auto sum = sums[r][0];
      sum = hn::Add(sum, hn::ShiftRight<1>(sums[r][1]));
      sum = hn::Add(sum, hn::ShiftRight<2>(sums[r][2]));
      sum = hn::Add(sum, hn::ShiftRight<3>(sums[r][3]));
      sum = hn::Add(sum, hn::ShiftRight<4>(sums[r][4]));
      sum = hn::Add(sum, hn::ShiftRight<5>(sums[r][5]));
      sum = hn::Add(sum, hn::ShiftRight<6>(sums[r][6]));
      sum = hn::Add(sum, hn::ShiftRight<7>(sums[r][7]));
      hn::StoreU(sum, dw, dots + r * kChunkTokens + slot);
    }
  }
}

template <int kRows>
HWY_INLINE void sign_dots_of_rows(const DotRows& work, std::size_t first_row) {
  for (std::size_t tile = 0; tile < static_cast<std::size_t>(work.n_tiles); ++tile) {
    sign_dots_of_tile<kRows>(work, work.keys + tile * work.tile_bytes,
                             work.rows + first_row * work.row_stride,
                             work.dots + first_row * kChunkTokens + tile * kSignSlots);
  }
}

// Two rows need sixteen registers for their sums.
constexpr int kSignRows = HWY_MAX_BYTES >= 64 ? 2 : 1;

void SignDots(const DotRows& work) {
  const auto n_rows = static_cast<std::size_t>(work.n_rows);
  std::size_t row = 0;
  for (; row + kSignRows <= n_rows; row += kSignRows) sign_dots_of_rows<kSignRows>(work, row);
  for (; row < n_rows; ++row) sign_dots_of_rows<1>(work, row);
}

void ExpandSigns(int head_dim, int n_tiles, const std::uint8_t* HWY_RESTRICT signs,
                 std::uint8_t* HWY_RESTRICT bytes) {
  const SignBytes db;
  const hn::Repartition<std::uint16_t, SignBytes> dh;
  const auto n_quads = static_cast<std::size_t>(head_dim) / 4;
  for (int tile = 0; tile < n_tiles; ++tile) {
    for (std::size_t quad = 0; quad < n_quads; ++quad) {
      const std::size_t k = quad % kQuadsOfWord;
      const std::uint8_t* HWY_RESTRICT group = signs + quad / kQuadsOfWord * kSignGroupBytes;
      if (k == 0) __builtin_prefetch(group + kSignsAhead);
      for (std::size_t slot = 0; slot < kSignSlots; slot += hn::Lanes(SignWords())) {
        const auto bits = hn::BitCast(dh, hn::LoadU(db, group + slot * 4));
        // Shifting 16-bit lanes moves bits across bytes; the mask removes them.
        const auto shifted = hn::BitCast(db, hn::ShiftRightSame(bits, static_cast<int>(k)));
        hn::StoreU(hn::And(shifted, hn::Set(db, std::uint8_t{1})), db,
                   bytes + quad * kSignGroupBytes + slot * 4);
      }
    }
    signs += plane_bytes(1, head_dim);
    bytes += n_quads * kSignGroupBytes;
  }
}

void BestOfChunkKernel(const BestOfChunk& work) {
  const SignFloats df;
  const SignWords dw;
  const SignHalfs dh;
  constexpr std::size_t kLanes = HWY_MAX_LANES_D(SignFloats);
  constexpr std::size_t kVectors = kChunkTokens / kLanes;
  const auto n_tokens = static_cast<std::size_t>(work.n_tokens);
  const auto hidden = hn::Set(df, -std::numeric_limits<float>::infinity());
  hn::Vec<SignFloats> scales[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    // Behind the last tile there may be no scales.
    const bool is_there = v * kLanes < n_tokens;
    const auto* from = reinterpret_cast<const hwy::float16_t*>(work.scales + v * kLanes);
    scales[v] = is_there ? hn::PromoteTo(df, hn::LoadU(dh, from)) : hn::Zero(df);
  }
  const auto two = hn::Set(df, 2.0F);
  for (std::size_t r = 0; r < static_cast<std::size_t>(work.n_rows); ++r) {
    const std::int32_t* HWY_RESTRICT dots = work.dots + r * kChunkTokens;
    const auto digit_sum = hn::Set(df, static_cast<float>(work.digit_sums[r]));
    const auto gain = hn::Set(df, work.gains[r]);
    const float* HWY_RESTRICT bias = work.bias[r];
    auto largest = hidden;
    if (bias == nullptr && n_tokens == kChunkTokens) {  // as nearly all chunks are
      for (std::size_t v = 0; v < kVectors; ++v) {
        const auto dot = hn::ConvertTo(df, hn::LoadU(dw, dots + v * kLanes));
        largest = hn::Max(largest, hn::Mul(hn::MulSub(dot, two, digit_sum), scales[v]));
      }
      work.best[r * work.best_stride] = hn::ReduceMax(df, largest) * work.gains[r];
      continue;
    }
    for (std::size_t v = 0; v < kVectors && v * kLanes < n_tokens; ++v) {
      const auto dot = hn::ConvertTo(df, hn::LoadU(dw, dots + v * kLanes));
      auto score = hn::Mul(hn::Mul(hn::MulSub(dot, two, digit_sum), scales[v]), gain);
      if (bias != nullptr) {
        score = hn::MulAdd(hn::Set(df, work.slopes[r]), hn::LoadU(df, bias + v * kLanes), score);
      }
      const std::size_t n_here = n_tokens - v * kLanes;
      if (n_here < kLanes) score = hn::IfThenElse(hn::FirstN(df, n_here), score, hidden);
      largest = hn::Max(largest, score);
    }
    work.best[r * work.best_stride] = hn::ReduceMax(df, largest);
  }
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(SignDots);
HWY_EXPORT(ExpandSigns);
HWY_EXPORT(BestOfChunkKernel);

void sign_dots(const DotRows& work) { HWY_DYNAMIC_DISPATCH(SignDots)(work); }
void expand_signs(int head_dim, int n_tiles, const std::uint8_t* signs, std::uint8_t* bytes) {
  HWY_DYNAMIC_DISPATCH(ExpandSigns)(head_dim, n_tiles, signs, bytes);
}
void best_of_chunk(const BestOfChunk& work) { HWY_DYNAMIC_DISPATCH(BestOfChunkKernel)(work); }

}  // namespace slipstream::turbo
#endif
