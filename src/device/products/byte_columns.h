// Columns of a product rounded to 8 bits, in blocks of 32 numbers.
//
// A number is numbers[k] * scale of its block, |numbers[k]| <= 127. The scale of a block with a
// number that is not finite is NaN, so that every product with it is. The sum of a block's numbers is
// kept, because weights are multiplied as unsigned: what was added to all weights of a block is
// taken off with it, as are the minima of types that have them.
//
//   numbers  [column][k]      k behind n_inner are 0
//   scales   [column][block]  blocks of padding have scale 0
//   sums     [column][block]
//
// Threads: columns may be rounded by different threads. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slipstream::turbo {

inline constexpr std::int64_t kByteBlock = 32;

struct ByteColumns {
  std::int8_t* numbers;  // n_padded for each column
  float* scales;         // n_padded / kByteBlock for each column, as sums
  std::int32_t* sums;
  std::int64_t n_padded;  // n_inner, rounded up to 64
};

// The memory for n_columns columns. A multiple of a cache line.
[[nodiscard]] std::size_t n_byte_column_bytes(std::int64_t n_inner, std::int64_t n_columns);
// Lays columns over memory that is aligned to cache lines.
[[nodiscard]] ByteColumns lay_byte_columns(std::byte* memory, std::int64_t n_inner,
                                           std::int64_t n_columns);
// Rounds one column to nearest and writes it as column `idx`.
void round_column(const float* column, std::int64_t n_inner, std::int64_t idx,
                  const ByteColumns& columns);

}  // namespace slipstream::turbo
