#include "device/products/amx_product.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace slipstream::turbo {

TileConfig product_tile_config() {
  TileConfig config;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = 64;
    config.n_rows[tile] = 16;
  }
  return config;
}

#if defined(__x86_64__)
namespace {

#define SLIP_AMX_BF16 __attribute__((target("amx-bf16,amx-tile")))

constexpr std::size_t kSideNumbers = kTileSide;
constexpr std::size_t kBlockStride = kTileBlockSide;

// Tile registers: sums 0 to 3, columns 4 and 5, rows 6 and 7.
// A block of two by two tiles, or of fewer.
template <bool kTwoColumns, bool kTwoRows>
SLIP_AMX_BF16 void multiply_tile_block(const MultiplyTiles& work, float* result,
                                       std::size_t stride) {
  const auto stride_bytes = static_cast<long long>(stride * sizeof(float));
  // NOLINTNEXTLINE(misc-const-correctness): the macro hides that _tile_stored() writes there.
  float* result_below = result + kSideNumbers * stride;
  if (work.is_first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, result, stride_bytes);
    if constexpr (kTwoRows) _tile_loadd(1, result + kSideNumbers, stride_bytes);
    if constexpr (kTwoColumns) _tile_loadd(2, result_below, stride_bytes);
    if constexpr (kTwoColumns && kTwoRows)
      _tile_loadd(3, result_below + kSideNumbers, stride_bytes);
  }
  const std::uint16_t* rows = work.rows;
  const std::uint16_t* columns = work.columns;
  for (std::int64_t tile = 0; tile < work.n_tiles; ++tile) {
    _tile_loadd(4, columns, 64);
    _tile_loadd(6, rows, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoRows) {
      _tile_loadd(7, rows + work.row_tile_stride, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoColumns) {
      _tile_loadd(5, columns + work.column_tile_stride, 64);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kTwoRows) _tile_dpbf16ps(3, 5, 7);
    }
    rows += kTileNumbers;
    columns += kTileNumbers;
  }
  _tile_stored(0, result, stride_bytes);
  if constexpr (kTwoRows) _tile_stored(1, result + kSideNumbers, stride_bytes);
  if constexpr (kTwoColumns) _tile_stored(2, result_below, stride_bytes);
  if constexpr (kTwoColumns && kTwoRows) _tile_stored(3, result_below + kSideNumbers, stride_bytes);
}

void multiply_any_block(const MultiplyTiles& work, float* result, std::size_t stride) {
  const bool two_rows = work.n_rows > kTileSide;
  if (work.n_columns > kTileSide) {
    two_rows ? multiply_tile_block<true, true>(work, result, stride)
             : multiply_tile_block<true, false>(work, result, stride);
  } else {
    two_rows ? multiply_tile_block<false, true>(work, result, stride)
             : multiply_tile_block<false, false>(work, result, stride);
  }
}

}  // namespace

void amx_multiply_tiles(const MultiplyTiles& work) {
  if (work.n_rows % kTileSide == 0 && work.n_columns % kTileSide == 0) {
    multiply_any_block(work, work.result, work.result_stride);
    return;
  }
  // At an edge of the result: whole tiles are computed elsewhere.
  alignas(64) float whole[kBlockStride * kBlockStride];
  MultiplyTiles apart = work;
  apart.is_first = true;
  multiply_any_block(apart, whole, kBlockStride);
  for (std::int64_t column = 0; column < work.n_columns; ++column) {
    const float* from = whole + static_cast<std::size_t>(column) * kBlockStride;
    float* to = work.result + static_cast<std::size_t>(column) * work.result_stride;
    for (std::int64_t row = 0; row < work.n_rows; ++row) {
      to[row] = from[row] + (work.is_first ? 0 : to[row]);
    }
  }
}

#else  // other architectures: never called, because has_amx_bf16() is false

void amx_multiply_tiles(const MultiplyTiles& /*work*/) {}

#endif

}  // namespace slipstream::turbo
