// This file is compiled once for every instruction set that Highway knows on this architecture. The
// first call chooses the best one that the machine has.
#include "device/products/panel_kernels.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/products/panel_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "device/products/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace slipstream::turbo::HWY_NAMESPACE {
// NOLINTBEGIN(misc-use-internal-linkage): HWY_EXPORT needs names; clang loses the target in
// namespace {}

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Words = hn::Rebind<std::uint32_t, Floats>;
using Brains = hn::Repartition<hwy::bfloat16_t, Floats>;

constexpr std::size_t kLanes = hn::MaxLanes(Floats());
constexpr std::size_t kGroup = 2 * kLanes;
constexpr std::size_t kSlice = kFloatSlice;
// Two sums for each column, two vectors of weights and one of the column must fit into registers.
constexpr std::size_t kColumns = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM ? 12 : 6;

// --- packing

void PackFloats(const float* rows, std::int64_t n_inner, float* group) {
  // Rows are kSlice floats long, so that four words can always be read; only k below n_inner are
  // written.
  const auto n = static_cast<std::size_t>(n_inner);
  for (std::size_t half = 0; half < kGroup; half += kLanes) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(rows + half * kSlice);
    auto* to = reinterpret_cast<std::uint32_t*>(group + half);
    std::size_t k = 0;
    for (; k + 4 <= n; k += 4) transpose_four(words + k, kSlice, to + k * kGroup, kGroup);
    for (; k < n; ++k) {
      for (std::size_t row = 0; row < kLanes; ++row) to[k * kGroup + row] = words[row * kSlice + k];
    }
  }
}

// Two floats become the two halves of a word.
HWY_INLINE auto round_pairs(const float* floats) {
  const Floats df;
  return hn::OrderedDemote2To(Brains(), hn::LoadU(df, floats), hn::LoadU(df, floats + kLanes));
}

void PackTiles(const float* rows, std::int64_t n_inner, std::uint16_t* tiles) {
  constexpr std::size_t kSide = kTileSide;
  constexpr std::size_t kPairs = kSlice / 2;
  const auto n = static_cast<std::size_t>(n_inner);
  alignas(64) std::uint32_t pairs[kSide * kPairs];
  for (std::size_t row = 0; row < kSide; ++row) {
    for (std::size_t k = 0; k < n; k += 2 * kLanes) {
      hn::StoreU(hn::BitCast(Words(), round_pairs(rows + row * kSlice + k)), Words(),
                 pairs + row * kPairs + k / 2);
    }
  }
  auto* to = reinterpret_cast<std::uint32_t*>(tiles);
  for (std::size_t pair = 0; pair < n / 2; pair += 4) {
    for (std::size_t row = 0; row < kSide; row += kLanes) {
      transpose_four(pairs + row * kPairs + pair, kPairs, to + pair * kSide + row, kSide);
    }
  }
}

void PackTileColumn(const float* column, std::int64_t n_inner, std::int64_t idx,
                    std::uint16_t* tiles) {
  const hn::Repartition<std::uint16_t, Floats> dh;
  constexpr std::size_t kInner = kTileInner;
  const auto n = static_cast<std::size_t>(n_inner);
  std::uint16_t* to = tiles + static_cast<std::size_t>(idx) * kInner;
  for (std::size_t k = 0; k < n; k += kInner, to += kTileNumbers) {
    alignas(64) float padded[kInner] = {};
    const float* from = column + k;
    if (n - k < kInner) {
      std::memcpy(padded, from, (n - k) * sizeof(float));
      from = padded;
    }
    for (std::size_t i = 0; i < kInner; i += 2 * kLanes) {
      hn::StoreU(hn::BitCast(dh, round_pairs(from + i)), dh, to + i);
    }
  }
}

// --- products

HWY_INLINE void multiply_block(const MultiplyFloats& work, float* HWY_RESTRICT result,
                               std::size_t stride, bool is_first) {
  const Floats df;
  hn::Vec<Floats> first[kColumns];
  hn::Vec<Floats> second[kColumns];
  for (std::size_t c = 0; c < kColumns; ++c) {
    first[c] = is_first ? hn::Zero(df) : hn::LoadU(df, result + c * stride);
    second[c] = is_first ? hn::Zero(df) : hn::LoadU(df, result + c * stride + kLanes);
  }
  const float* HWY_RESTRICT group = work.group;
  const float* HWY_RESTRICT block = work.block;
  const auto n = static_cast<std::size_t>(work.n_inner);
  for (std::size_t k = 0; k < n; ++k, group += kGroup) {
    const auto weights0 = hn::LoadU(df, group);
    const auto weights1 = hn::LoadU(df, group + kLanes);
    for (std::size_t c = 0; c < kColumns; ++c) {
      const auto number = hn::Set(df, block[c * kSlice + k]);
      first[c] = hn::MulAdd(weights0, number, first[c]);
      second[c] = hn::MulAdd(weights1, number, second[c]);
    }
  }
  for (std::size_t c = 0; c < kColumns; ++c) {
    hn::StoreU(first[c], df, result + c * stride);
    hn::StoreU(second[c], df, result + c * stride + kLanes);
  }
}

void MultiplyFloatsKernel(const MultiplyFloats& work) {
  const auto n_rows = static_cast<std::size_t>(work.n_rows);
  const auto n_columns = static_cast<std::size_t>(work.n_columns);
  if (n_rows == kGroup && n_columns == kColumns) {
    multiply_block(work, work.result, work.result_stride, work.is_first);
    return;
  }
  // At an edge of the result: a whole block is computed elsewhere.
  alignas(64) float whole[kColumns * kGroup];
  multiply_block(work, whole, kGroup, true);
  for (std::size_t c = 0; c < n_columns; ++c) {
    float* result = work.result + c * work.result_stride;
    for (std::size_t row = 0; row < n_rows; ++row) {
      result[row] = whole[c * kGroup + row] + (work.is_first ? 0 : result[row]);
    }
  }
}

FloatShape ShapeOfTarget() {
  return {.group_rows = std::int64_t{kGroup}, .block_columns = std::int64_t{kColumns}};
}

// NOLINTEND(misc-use-internal-linkage)
}  // namespace slipstream::turbo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace slipstream::turbo {

HWY_EXPORT(ShapeOfTarget);
HWY_EXPORT(PackFloats);
HWY_EXPORT(PackTiles);
HWY_EXPORT(PackTileColumn);
HWY_EXPORT(MultiplyFloatsKernel);

FloatShape float_shape() { return HWY_DYNAMIC_DISPATCH(ShapeOfTarget)(); }
void pack_floats(const float* rows, std::int64_t n_inner, float* group) {
  HWY_DYNAMIC_DISPATCH(PackFloats)(rows, n_inner, group);
}
void pack_tiles(const float* rows, std::int64_t n_inner, std::uint16_t* tiles) {
  HWY_DYNAMIC_DISPATCH(PackTiles)(rows, n_inner, tiles);
}
void pack_tile_column(const float* column, std::int64_t n_inner, std::int64_t idx,
                      std::uint16_t* tiles) {
  HWY_DYNAMIC_DISPATCH(PackTileColumn)(column, n_inner, idx, tiles);
}
void multiply_floats(const MultiplyFloats& work) {
  HWY_DYNAMIC_DISPATCH(MultiplyFloatsKernel)(work);
}

}  // namespace slipstream::turbo
#endif
