// The kernels of products of floats and of tiles. Those of bytes are in byte_kernels.h. What is
// packed:
//
//   floats   rows in groups of as many as two vectors have:   [group][k][row]            f32
//            columns in blocks:                               [block][slice][column][k]  f32
//   tiles    what AMX multiplies, 16 rows or columns by 32 k, 1,024 bytes:
//            rows:                                            [16 rows][32 k][k / 2][row][k % 2] bf16
//            columns:                                         [16 columns][32 k][column][k]      bf16
//
// Rows and columns that do not exist are 0, as are k behind the last.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slipstream::turbo {

// k of a block of columns that stay in the first cache while a panel passes by. Rows are expanded
// in pieces of as many. A multiple of every type's block.
inline constexpr std::int64_t kFloatSlice = 256;

inline constexpr std::int64_t kTileSide = 16;  // rows or columns
inline constexpr std::int64_t kTileInner = 32;
inline constexpr std::size_t kTileNumbers = kTileSide * kTileInner;

// How many rows are a group, and how many columns a block, on this machine.
struct FloatShape {
  std::int64_t group_rows;
  std::int64_t block_columns;
};
[[nodiscard]] FloatShape float_shape();

// Packs expanded rows, kFloatSlice floats apart, as k of a group: group[k][row].
// REQUIRES: rows has group_rows rows; n_inner <= kFloatSlice.
void pack_floats(const float* rows, std::int64_t n_inner, float* group);
// Packs sixteen expanded rows, kFloatSlice floats apart, as tiles.
// REQUIRES: n_inner is a multiple of kTileInner and at most kFloatSlice.
void pack_tiles(const float* rows, std::int64_t n_inner, std::uint16_t* tiles);
// Packs one column as column `idx` of its tiles. Pads k with zeroes.
void pack_tile_column(const float* column, std::int64_t n_inner, std::int64_t idx,
                      std::uint16_t* tiles);

// result[column][row] (+)= sum over k of group[k][row] * block[column][k].
struct MultiplyFloats {
  const float* group;
  const float* block;  // columns are kFloatSlice floats apart
  std::int64_t n_inner;
  std::int64_t n_rows;     // those to be written
  std::int64_t n_columns;  // likewise
  float* result;
  std::size_t result_stride;
  bool is_first;  // whether the result is overwritten
};
void multiply_floats(const MultiplyFloats& work);

}  // namespace slipstream::turbo
