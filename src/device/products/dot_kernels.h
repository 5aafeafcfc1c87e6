// The kernels of a product with few columns: dot products of rows of weights, as they lie in the
// file, with columns rounded to 8 bits.
//
// Bytes of weights are multiplied with bytes of columns, and sums are scaled once for every block
// of 32. 256 weights are a piece. A vector of 64 bytes has a quarter of each of eight blocks, so that
// sums of quarters are added as integers, and one vector has the sums of all blocks, two of each.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>

namespace slipstream::turbo {

inline constexpr std::int64_t kDotInner = 256;

// 256 numbers of a column.
struct alignas(64) DotColumn {
  std::int8_t numbers[kDotInner];  // [quarter of a block][block][8]
  float scales[16];                // of blocks, each twice
  // What takes off the numbers that were added to weights, because bytes of weights are unsigned.
  std::int32_t added_to_signed[16];  // 128 to each: -64 * sum of the block's numbers, twice
  float added_to_q6_k[16];  // 32 to each: 32 * scale * sum of 16 numbers, in the column's order
  float minimums[16];       // eight zeroes, and scale * sum of each block's numbers
};

// How many columns share the reading of a row, at most. A power of two.
[[nodiscard]] std::int64_t dot_columns_max();

// Rounds up to kDotInner numbers. Those behind the last are 0.
void pack_dot_column(const float* numbers, std::int64_t n, DotColumn* to);

// result[column][row] (+)= row * column.
struct DotWork {
  const std::byte* rows;
  std::size_t row_bytes;
  std::int64_t n_rows;
  std::int64_t n_inner;
  const DotColumn* columns;  // [n_inner / kDotInner][n_group]
  std::int64_t n_group;      // 1, 2, 4 or 8; at most dot_columns_max()
  std::int64_t n_columns;    // those to be written
  float* result;
  std::size_t result_stride;
  bool is_first;  // whether the result is overwritten
};
using DotKernel = void (*)(const DotWork& work);

// null: there is none for the type.
[[nodiscard]] DotKernel dot_kernel(ggml_type type);

}  // namespace slipstream::turbo
