// Sums of bytes are exact for the largest weights and columns, on every instruction set that
// multiplies them. Whole products are tested with the other forms (product_test.cpp).
#include "device/products/byte_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/kernel_test_support.h"

namespace slipstream::turbo {
namespace {

// One group of rows times one block of columns, 64 k: all weights, scales and numbers the same.
void expect_sum_of_same(int weight, int number, int n_parts) {
  constexpr std::size_t kBlocks = 2;
  const ByteShape shape = byte_shape();
  const auto rows = static_cast<std::size_t>(shape.group_rows);
  const auto n_columns = static_cast<std::size_t>(shape.block_columns);
  const auto parts = static_cast<std::size_t>(n_parts);
  Guarded<std::byte> group(kBlocks * shape.group_block_bytes(n_parts));
  Guarded<std::byte> columns(kBlocks * shape.column_block_bytes(n_parts));
  for (std::size_t block = 0; block < kBlocks; ++block) {
    std::byte* of_rows = group.data() + block * shape.group_block_bytes(n_parts);
    std::fill_n(of_rows, rows * kByteBlock, static_cast<std::byte>(weight));
    auto* scales = reinterpret_cast<float*>(of_rows + rows * kByteBlock);
    std::fill_n(scales, parts * rows, 1.0F);
    std::fill_n(scales + parts * rows, parts * rows, 3.0F);  // minima
    std::byte* of_columns = columns.data() + block * shape.column_block_bytes(n_parts);
    std::fill_n(of_columns, n_columns * kByteBlock, static_cast<std::byte>(number));
    auto* column_scales = reinterpret_cast<float*>(of_columns + n_columns * kByteBlock);
    std::fill_n(column_scales, n_columns, 1.0F);
    std::fill_n(column_scales + n_columns, parts * n_columns, 5.0F);  // sums
  }
  Guarded<float> result(rows * n_columns);
  multiply_bytes({.group = group.data(),
                  .columns = columns.data(),
                  .n_blocks = kBlocks,
                  .n_parts = n_parts,
                  .largest_weight = weight,
                  .n_rows = shape.group_rows,
                  .n_columns = shape.block_columns,
                  .result = result.data(),
                  .result_stride = rows,
                  .is_first = true});
  const auto expected =
      static_cast<float>(int{kBlocks} * (int{kByteBlock} * weight * number - n_parts * 3 * 5));
  for (const float sum : result.span()) ASSERT_EQ(sum, expected);
}

TEST(ByteKernels, AddTheLargestNumbersExactly) {
  on_every_target([] {
    for (const int weight : {1, 15, 24, 31, 63, 86, 127, 240, 255}) {
      if (weight > byte_shape().largest_weight) continue;
      for (const int number : {-128, -127, 1, 127}) {
        for (const int n_parts : {1, 2}) {
          SCOPED_TRACE(testing::Message() << weight << " * " << number << ", parts " << n_parts);
          expect_sum_of_same(weight, number, n_parts);
        }
      }
    }
  });
}

}  // namespace
}  // namespace slipstream::turbo
