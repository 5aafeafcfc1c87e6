// Products of bf16 tiles on AMX.
//
// Two tiles of columns by two of rows are multiplied at a time: four tiles are read for four
// products, where one by one would read two for each. Intrinsics are used because Highway does not
// support AMX.
//
// Threads: thread-safe; each thread has its own tile registers. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/products/panel_kernels.h"
#include "device/tile_registers.h"

namespace slipstream::turbo {

// Rows or columns that are multiplied at a time.
inline constexpr std::int64_t kTileBlockSide = 2 * kTileSide;

[[nodiscard]] TileConfig product_tile_config();

// result[column][row] (+)= sum over k of rows * columns, both packed as tiles (panel_kernels.h).
struct MultiplyTiles {
  const std::uint16_t* rows;
  std::size_t row_tile_stride;  // numbers between tiles of rows; likewise for columns
  std::int64_t n_rows;          // at most 32; those to be written
  const std::uint16_t* columns;
  std::size_t column_tile_stride;
  std::int64_t n_columns;  // at most 32; those to be written
  std::int64_t n_tiles;    // of 32 k
  float* result;
  std::size_t result_stride;
  bool is_first;  // whether the result is overwritten
};
// REQUIRES: this thread has a TileScope with product_tile_config().
void amx_multiply_tiles(const MultiplyTiles& work);

}  // namespace slipstream::turbo
