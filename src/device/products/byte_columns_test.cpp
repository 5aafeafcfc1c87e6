// Columns are rounded to the nearest of 255 levels of their block, the same on every instruction
// set.
#include "device/products/byte_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "device/kernel_test_support.h"
#include "device/products/product_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr std::size_t kNumbers = kByteBlock;

// What is expected of one block. Numbers behind the last are 0.
void expect_block(std::span<const float> block, const std::int8_t* numbers, float scale,
                  std::int32_t sum) {
  float largest = 0;
  for (const float number : block) largest = std::max(largest, std::abs(number));
  EXPECT_EQ(scale, largest / 127.0F);
  std::int32_t expected_sum = 0;
  for (std::size_t i = 0; i < kNumbers; ++i) {
    const float number = i < block.size() ? block[i] : 0;
    const float expected = largest > 0 ? std::nearbyint(number * (127.0F / largest)) : 0;
    ASSERT_EQ(numbers[i], static_cast<int>(expected)) << i;
    expected_sum += static_cast<std::int32_t>(expected);
  }
  EXPECT_EQ(sum, expected_sum);
}

TEST(ByteColumns, AreTheNearestNumbers) {
  constexpr std::int64_t kColumns = 3;
  for (const std::int64_t n_inner : {1, 31, 32, 33, 64, 100, 256, 1000}) {
    const auto n = static_cast<std::size_t>(n_inner);
    on_every_target([&] {
      Guarded<std::byte> memory(n_byte_column_bytes(n_inner, kColumns));
      std::ranges::fill(memory.span(), std::byte{0x55});
      const ByteColumns columns = lay_byte_columns(memory.data(), n_inner, kColumns);
      ASSERT_EQ(columns.n_padded, (n_inner + 63) / 64 * 64);
      const auto n_padded = static_cast<std::size_t>(columns.n_padded);
      for (std::int64_t idx = 0; idx < kColumns; ++idx) {
        SCOPED_TRACE(testing::Message() << n_inner << " numbers, column " << idx);
        Guarded<float> column(n);
        std::ranges::copy(random_floats(n, static_cast<unsigned>(idx)), column.data());
        round_column(column.data(), n_inner, idx, columns);
        const std::size_t first = static_cast<std::size_t>(idx) * n_padded;
        for (std::size_t k = 0; k < n_padded; k += kNumbers) {
          const std::size_t end = std::min(k + kNumbers, std::max(k, n));
          const auto block = k < n ? column.span().subspan(k, end - k) : std::span<float>();
          const std::size_t at = (first + k) / kNumbers;
          expect_block(block, columns.numbers + first + k, columns.scales[at], columns.sums[at]);
        }
      }
    });
  }
}

// A block whose inverse scale overflows has no numbers; its neighbour keeps its own.
TEST(ByteColumns, TakeTheSmallestNumbersAsZero) {
  std::vector<float> column(2 * kNumbers, std::numeric_limits<float>::denorm_min());
  column[kNumbers] = -2;
  on_every_target([&] {
    Guarded<std::byte> memory(n_byte_column_bytes(2 * kByteBlock, 1));
    const ByteColumns columns = lay_byte_columns(memory.data(), 2 * kByteBlock, 1);
    round_column(column.data(), 2 * kByteBlock, 0, columns);
    EXPECT_EQ(columns.scales[0], 0);
    EXPECT_EQ(columns.sums[0], 0);
    EXPECT_EQ(columns.numbers[0], 0);
    EXPECT_EQ(columns.scales[1], 2 / 127.0F);
    EXPECT_EQ(columns.sums[1], -127);
    EXPECT_EQ(columns.numbers[kNumbers], -127);
  });
}

}  // namespace
}  // namespace slipstream::turbo
