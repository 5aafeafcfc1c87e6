// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/products/byte_columns.h"

#include <algorithm>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/products/byte_columns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Words = hn::Rebind<std::int32_t, Floats>;
using Bytes = hn::Rebind<std::int8_t, Floats>;  // as many as floats

constexpr std::size_t kBlock = kByteBlock;
// A block of smaller numbers counts as 0: its inverse scale would not be finite.
constexpr float kSmallest = 1e-35F;

// One block of 32 floats.
HWY_INLINE void round_block(const float* HWY_RESTRICT from, std::int8_t* HWY_RESTRICT numbers,
                            float* scale, std::int32_t* sum) {
  const Floats df;
  const Words dw;
  const std::size_t n_lanes = hn::Lanes(df);
  auto maxima = hn::Zero(df);
  auto is_broken = hn::MaskFalse(df);
  for (std::size_t i = 0; i < kBlock; i += n_lanes) {
    const auto magnitudes = hn::Abs(hn::LoadU(df, from + i));
    maxima = hn::Max(maxima, magnitudes);
    is_broken = hn::Or(is_broken, hn::Not(hn::IsFinite(magnitudes)));
  }
  if (!hn::AllFalse(df, is_broken)) {
    std::memset(numbers, 0, kBlock);
    *scale = std::numeric_limits<float>::quiet_NaN();
    *sum = 0;
    return;
  }
  const float largest = hn::ReduceMax(df, maxima);
  const bool is_zero = largest < kSmallest;
  const auto inverse = hn::Set(df, is_zero ? 0.0F : 127.0F / largest);
  auto sums = hn::Zero(dw);
  for (std::size_t i = 0; i < kBlock; i += n_lanes) {
    const auto words = hn::NearestInt(hn::Mul(hn::LoadU(df, from + i), inverse));
    sums = hn::Add(sums, words);
    hn::StoreU(hn::DemoteTo(Bytes(), words), Bytes(), numbers + i);
  }
  *scale = is_zero ? 0.0F : largest / 127.0F;
  *sum = hn::ReduceSum(dw, sums);
}

void RoundColumn(const float* column, std::int64_t n_inner, std::int64_t idx,
                 const ByteColumns& columns) {
  const auto n = static_cast<std::size_t>(n_inner);
  const auto n_padded = static_cast<std::size_t>(columns.n_padded);
  const std::size_t first = static_cast<std::size_t>(idx) * n_padded;
  std::int8_t* numbers = columns.numbers + first;
  float* scales = columns.scales + first / kBlock;
  std::int32_t* sums = columns.sums + first / kBlock;
  for (std::size_t k = 0; k < n_padded; k += kBlock) {
    const float* from = column + k;
    alignas(64) float padded[kBlock] = {};
    if (k + kBlock > n) {
      if (k < n) std::memcpy(padded, from, (n - k) * sizeof(float));
      from = padded;
    }
    round_block(from, numbers + k, scales + k / kBlock, sums + k / kBlock);
  }
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {
namespace {

constexpr std::size_t kLineBytes = 64;

constexpr std::size_t whole_lines(std::size_t n_bytes) {
  return (n_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Numbers of all columns.
constexpr std::size_t n_byte_numbers(std::int64_t n_inner, std::int64_t n_columns) {
  return whole_lines(static_cast<std::size_t>(n_inner)) * static_cast<std::size_t>(n_columns);
}

}  // namespace

HWY_EXPORT(RoundColumn);

std::size_t n_byte_column_bytes(std::int64_t n_inner, std::int64_t n_columns) {
  const std::size_t n = n_byte_numbers(n_inner, n_columns);
  return n + whole_lines(n / kByteBlock * sizeof(float)) +
         whole_lines(n / kByteBlock * sizeof(std::int32_t));
}

ByteColumns lay_byte_columns(std::byte* memory, std::int64_t n_inner, std::int64_t n_columns) {
  const std::size_t n = n_byte_numbers(n_inner, n_columns);
  std::byte* scales = memory + n;
  std::byte* sums = scales + whole_lines(n / kByteBlock * sizeof(float));
  return {
      .numbers = reinterpret_cast<std::int8_t*>(memory),
      .scales = reinterpret_cast<float*>(scales),
      .sums = reinterpret_cast<std::int32_t*>(sums),
      .n_padded = static_cast<std::int64_t>(whole_lines(static_cast<std::size_t>(n_inner))),
  };
}

void round_column(const float* column, std::int64_t n_inner, std::int64_t idx,
                  const ByteColumns& columns) {
  HWY_DYNAMIC_DISPATCH(RoundColumn)(column, n_inner, idx, columns);
}

}  // namespace slipstream::turbo
#endif
