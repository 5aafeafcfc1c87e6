// Our expanders give what ggml's give, on every instruction set.
#include "device/products/expand_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "device/kernel_test_support.h"
#include "device/products/product_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kWeights = 1024;

// Scale and minimum of a K type may be multiplied and added in one rounding. Both are at most as
// large as the largest two weights of 32 together.
float tolerance(std::span<const float> expected, std::size_t i) {
  float largest = 0;
  for (const float number : expected.subspan(i / 32 * 32, 32)) {
    largest = std::max(largest, std::abs(number));
  }
  return largest * 0x1p-21F;
}

class ExpandRow : public testing::TestWithParam<ggml_type> {
 protected:
  void expect_as_ggml(std::span<std::byte> row) {
    std::vector<float> expected(kWeights);
    if (GetParam() == GGML_TYPE_F32) {
      std::memcpy(expected.data(), row.data(), row.size());
    } else {
      ggml_get_type_traits(GetParam())->to_float(row.data(), expected.data(), kWeights);
    }
    Guarded<float> floats(kWeights);
    on_every_target([&] {
      std::ranges::fill(floats.span(), 0.0F);
      row_expander(GetParam())(row.data(), floats.data(), kWeights);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (std::isfinite(expected[i])) {
          ASSERT_NEAR(floats.data()[i], expected[i], tolerance(expected, i)) << i;
        }
      }
    });
  }
};

TEST_P(ExpandRow, GivesWhatGgmlGives) {
  Guarded<std::byte> row(ggml_row_size(GetParam(), kWeights));
  fill_weights(GetParam(), 1, kWeights, 7, row.span());
  expect_as_ggml(row.span());
}

// Bytes that no quantiser writes: every code and every scale occurs.
TEST_P(ExpandRow, GivesWhatGgmlGivesForAnyBytes) {
  if (!ggml_is_quantized(GetParam())) return;
  Guarded<std::byte> row(ggml_row_size(GetParam(), kWeights));
  std::mt19937 random(8);
  for (int repeat = 0; repeat < 8; ++repeat) {
    for (std::byte& byte : row.span()) byte = static_cast<std::byte>(random());
    expect_as_ggml(row.span());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExpandRow,
                         testing::Values(GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16,
                                         GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL,
                                         GGML_TYPE_MXFP4, GGML_TYPE_IQ4_XS, GGML_TYPE_Q4_K,
                                         GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ2_XXS),
                         [](const auto& type) { return std::string(ggml_type_name(type.param)); });

TEST(ExpandRowOfHalfs, WritesNothingBehindTheLast) {
  for (const ggml_type type : {GGML_TYPE_F16, GGML_TYPE_BF16}) {
    for (const std::int64_t n : {1, 3, 15, 17, 33}) {
      Guarded<std::byte> row(ggml_row_size(type, n));
      fill_weights(type, 1, n, 9, row.span());
      Guarded<float> floats(static_cast<std::size_t>(n));
      std::vector<float> expected(static_cast<std::size_t>(n));
      ggml_get_type_traits(type)->to_float(row.data(), expected.data(), n);
      on_every_target([&] {
        row_expander(type)(row.data(), floats.data(), n);
        EXPECT_TRUE(std::ranges::equal(floats.span(), expected)) << n;
      });
    }
  }
}

}  // namespace
}  // namespace slipstream::turbo
