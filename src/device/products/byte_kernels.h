// The kernels of products of bytes: weights as unsigned bytes, columns rounded to signed ones.
//
// Four products of bytes and their sum are one instruction with VNNI, where floats need four. Sums
// of integers end where the scale does: after a block of 32 k, or a part of it. Sums of blocks are
// floats. All that belongs to 32 k lies together:
//
//   group    as many rows as a vector has words:  [block of 32 k] of
//            [k / 4][row][k % 4] u8, [part][row] scales f32, [part][row] minima f32
//   columns  a few that are multiplied at a time: [block of 32 k] of
//            [k / 4][column][k % 4] i8, [column] scales f32, [part][column] sums f32
//
// A sum is that of the part's numbers times their scale: what the minimum is multiplied with.
// Rows and columns that do not exist are 0.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/products/byte_columns.h"

namespace slipstream::turbo {

// k of columns that stay in the first cache while a panel passes by. A multiple of every type's
// block.
inline constexpr std::int64_t kByteSlice = 1024;
// k of rows that are expanded at a time.
inline constexpr std::int64_t kByteRowSlice = 256;

// How many rows are a group, and how many columns a block, on this machine.
struct ByteShape {
  std::int64_t group_rows;
  std::int64_t block_columns;
  int largest_weight;  // with larger ones, floats are faster here

  // Bytes for 32 k.
  [[nodiscard]] std::size_t group_block_bytes(int n_parts) const {
    return static_cast<std::size_t>(group_rows * (kByteBlock + 8 * n_parts));
  }
  [[nodiscard]] std::size_t column_block_bytes(int n_parts) const {
    return static_cast<std::size_t>(block_columns * (kByteBlock + 4 + 4 * n_parts));
  }
};
[[nodiscard]] ByteShape byte_shape();

// Writes the bytes of group_rows rows, kByteRowSlice apart, to a group. Leaves scales and minima.
// REQUIRES: n_inner is a multiple of kByteBlock and at most kByteRowSlice.
void pack_byte_rows(const std::uint8_t* rows, std::int64_t n_inner, int n_parts, std::byte* group);
// Writes column 0 of `column` to a block of columns, as column `idx`.
// REQUIRES: n_inner is a multiple of kByteBlock.
void pack_byte_column(const ByteColumns& column, std::int64_t n_inner, int n_parts,
                      std::int64_t idx, std::byte* columns);

// result[column][row] (+)= sum over k of rows * columns.
struct MultiplyBytes {
  const std::byte* group;
  const std::byte* columns;
  std::int64_t n_blocks;  // of 32 k
  int n_parts;
  int largest_weight;
  std::int64_t n_rows;     // those to be written
  std::int64_t n_columns;  // likewise
  float* result;
  std::size_t result_stride;
  bool is_first;  // whether the result is overwritten
};
void multiply_bytes(const MultiplyBytes& work);

}  // namespace slipstream::turbo
