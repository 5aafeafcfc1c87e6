// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/attention/sign_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/attention/sign_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of at most 16 lanes of 32 bits.
using SignFloats = hn::CappedTag<float, kTileTokens>;
using SignWords = hn::Rebind<std::int32_t, SignFloats>;
using SignHalfs = hn::Rebind<hwy::float16_t, SignFloats>;
using SignHalfBits = hn::Rebind<std::uint16_t, SignFloats>;
using SignScaleBytes = hn::Rebind<std::uint8_t, SignFloats>;

using SignPlanes = hn::CappedTag<std::uint8_t, kChunkTokens>;  // a byte of each token
using SignSums = hn::RebindToSigned<SignPlanes>;
using SignWideSums = hn::RepartitionToWide<SignSums>;

constexpr std::size_t kTableBytes = 16;

// Sums of bytes are added in 16 bits, those of even tokens and of odd ones apart.
template <std::size_t kRows>
HWY_INLINE void sign_dots_of_rows(const SignDots& work, std::size_t first_row) {
  const SignPlanes db;
  const SignSums di;
  const SignWideSums dw;
  const hn::RepartitionToWide<SignWideSums> dd;
  const hn::Half<SignWideSums> dw_half;
  const auto nibble = hn::Set(db, std::uint8_t{15});
  const std::span<const std::uint16_t> planes = work.signs.planes;
  const std::size_t row_tables = work.row_tables;
  const std::int8_t* HWY_RESTRICT tables = work.tables + first_row * row_tables;
  for (std::size_t token = 0; token < kChunkTokens; token += hn::Lanes(db)) {
    hn::Vec<SignWideSums> even[kRows];
    hn::Vec<SignWideSums> odd[kRows];
    for (std::size_t r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(dw);
    for (std::size_t i = 0; i < planes.size(); i += 2) {
      const std::uint8_t* HWY_RESTRICT signs_a =
          work.signs.first_plane + planes[i] * work.signs.plane_bytes + token;
      const std::uint8_t* HWY_RESTRICT signs_b =
          work.signs.first_plane + planes[i + 1] * work.signs.plane_bytes + token;
      __builtin_prefetch(signs_a + work.signs.ahead);
      __builtin_prefetch(signs_b + work.signs.ahead);
      const auto a = hn::LoadU(db, signs_a);
      const auto b = hn::LoadU(db, signs_b);
      const auto a_low = hn::And(a, nibble);
      const auto a_high = hn::ShiftRight<4>(a);
      const auto b_low = hn::And(b, nibble);
      const auto b_high = hn::ShiftRight<4>(b);
      for (std::size_t r = 0; r < kRows; ++r) {
        const std::int8_t* HWY_RESTRICT its = tables + r * row_tables;
        const std::int8_t* HWY_RESTRICT of_a = its + planes[i] * 2 * kTableBytes;
        const std::int8_t* HWY_RESTRICT of_b = its + planes[i + 1] * 2 * kTableBytes;
        const auto look_up = [&](const std::int8_t* table, auto index) HWY_ATTR {
          return hn::TableLookupBytes(hn::LoadDup128(di, table), hn::BitCast(di, index));
        };
        const auto sum = hn::BitCast(
            dw, hn::Add(hn::Add(look_up(of_a, a_low), look_up(of_a + kTableBytes, a_high)),
                        hn::Add(look_up(of_b, b_low), look_up(of_b + kTableBytes, b_high))));
        even[r] = hn::Add(even[r], hn::ShiftRight<8>(hn::ShiftLeft<8>(sum)));
        odd[r] = hn::Add(odd[r], hn::ShiftRight<8>(sum));
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      std::int32_t* HWY_RESTRICT dots = work.dots + (first_row + r) * kChunkTokens + token;
      const std::size_t n = hn::Lanes(dd);
      for (const auto& [at, tokens] :
           {std::pair{std::size_t{0}, hn::InterleaveWholeLower(dw, even[r], odd[r])},
            std::pair{2 * n, hn::InterleaveWholeUpper(dw, even[r], odd[r])}}) {
        hn::StoreU(hn::PromoteTo(dd, hn::LowerHalf(dw_half, tokens)), dd, dots + at);
        hn::StoreU(hn::PromoteTo(dd, hn::UpperHalf(dw_half, tokens)), dd, dots + at + n);
      }
    }
  }
}

HWY_INLINE void sign_dots_of_all(const SignDots& work) {
  constexpr std::size_t kRowsAtOnce = HWY_MAX_BYTES >= 64 ? 4 : 2;
  const auto n_rows = static_cast<std::size_t>(work.n_rows);
  std::size_t row = 0;
  for (; row + kRowsAtOnce <= n_rows; row += kRowsAtOnce) sign_dots_of_rows<kRowsAtOnce>(work, row);
  for (; row + 2 <= n_rows; row += 2) sign_dots_of_rows<2>(work, row);
  if (row < n_rows) sign_dots_of_rows<1>(work, row);
}

void SignDotsKernel(const SignDots& work) { sign_dots_of_all(work); }

HWY_INLINE void find_best_of_chunk(const BestOfChunk& work) {
  const SignFloats df;
  const SignWords dw;
  const SignHalfs dh;
  const SignHalfBits dhb;
  constexpr std::size_t kLanes = HWY_MAX_LANES_D(SignFloats);
  constexpr std::size_t kVectors = kChunkTokens / kLanes;
  const auto n_tokens = static_cast<std::size_t>(work.n_tokens);
  const auto hidden = hn::Set(df, -std::numeric_limits<float>::infinity());
  hn::Vec<SignFloats> scales[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    // The bits of an f16 behind its sign.
    const auto bits = hn::PromoteTo(dhb, hn::LoadU(SignScaleBytes(), work.scales + v * kLanes));
    scales[v] = hn::PromoteTo(df, hn::BitCast(dh, hn::ShiftLeft<7>(bits)));
  }
  for (std::size_t r = 0; r < static_cast<std::size_t>(work.n_rows); ++r) {
    const std::int32_t* HWY_RESTRICT dots = work.dots + r * kChunkTokens;
    const auto gain = hn::Set(df, work.gains[r]);
    const float* HWY_RESTRICT bias = work.bias == nullptr ? nullptr : work.bias[r];
    auto largest = hidden;
    if (bias == nullptr && n_tokens == kChunkTokens) {  // as nearly all chunks are
      for (std::size_t v = 0; v < kVectors; ++v) {
        const auto dot = hn::ConvertTo(df, hn::LoadU(dw, dots + v * kLanes));
        largest = hn::Max(largest, hn::Mul(dot, scales[v]));
      }
      work.best[r * work.best_stride] = hn::ReduceMax(df, largest) * work.gains[r];
      continue;
    }
    for (std::size_t v = 0; v < kVectors && v * kLanes < n_tokens; ++v) {
      const auto dot = hn::ConvertTo(df, hn::LoadU(dw, dots + v * kLanes));
      auto score = hn::Mul(hn::Mul(dot, scales[v]), gain);
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

void BestOfChunkKernel(const BestOfChunk& work) { find_best_of_chunk(work); }

// Chunks are fetched this many before they are read.
constexpr std::size_t kChunksAhead = 16;

void ScanSigns(const SignScan& work) {
  for (std::size_t i = 0; i < work.chunks.size(); ++i) {
    const std::ptrdiff_t chunk = work.chunks[i];
    const std::ptrdiff_t next = work.chunks[std::min(i + kChunksAhead, work.chunks.size() - 1)];
    const std::ptrdiff_t ahead = (next - chunk) * kChunkTokens;
    const std::uint8_t* scales = work.scales + chunk * kChunkTokens;
    __builtin_prefetch(scales + ahead);
    sign_dots_of_all({.signs = {.first_plane = work.signs + chunk * kChunkTokens,
                                .plane_bytes = work.plane_bytes,
                                .planes = work.planes,
                                .ahead = ahead},
                      .tables = work.tables,
                      .row_tables = work.row_tables,
                      .n_rows = work.n_rows,
                      .dots = work.dots});
    find_best_of_chunk({.dots = work.dots,
                        .scales = scales,
                        .n_tokens = kChunkTokens,
                        .n_rows = work.n_rows,
                        .gains = work.gains,
                        .bias = nullptr,
                        .slopes = nullptr,
                        .best = work.best + chunk,
                        .best_stride = work.best_stride});
  }
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(SignDotsKernel);
HWY_EXPORT(BestOfChunkKernel);
HWY_EXPORT(ScanSigns);

float make_sign_tables(std::span<const float> query, float peak, std::int8_t* tables) {
  if (peak == 0) {
    std::fill_n(tables, sign_table_bytes(static_cast<int>(query.size())), std::int8_t{0});
    return 0;
  }
  const float per_step = kSignDigitMax / peak;
  for (std::size_t channel = 0; channel < query.size(); channel += 4, tables += 16) {
    int digits[4];
    for (std::size_t i = 0; i < 4; ++i) {
      digits[i] = static_cast<int>(std::lround(query[channel + i] * per_step));
    }
    for (unsigned signs = 0; signs < 16; ++signs) {
      int sum = 0;
      for (unsigned i = 0; i < 4; ++i) sum += (signs >> i & 1U) != 0 ? digits[i] : -digits[i];
      tables[signs] = static_cast<std::int8_t>(sum);
    }
  }
  return peak / kSignDigitMax;
}

void sign_dots(const SignDots& work) { HWY_DYNAMIC_DISPATCH(SignDotsKernel)(work); }
void best_of_chunk(const BestOfChunk& work) { HWY_DYNAMIC_DISPATCH(BestOfChunkKernel)(work); }
void scan_signs(const SignScan& work) { HWY_DYNAMIC_DISPATCH(ScanSigns)(work); }

}  // namespace slipstream::turbo
#endif
