// Weights as bytes are what ggml expands, on every instruction set.
#include "device/products/expand_bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "device/kernel_test_support.h"
#include "device/products/product_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr std::int64_t kByteTestWeights = 1024;

class ExpandBytes : public testing::TestWithParam<ggml_type> {
 protected:
  // bytes * scale - minimum, of a row whose scales lie apart as in a group of three rows.
  void expect_as_ggml(std::span<const std::byte> row) {
    constexpr std::size_t kRows = 3;
    constexpr std::size_t kBlocks = kByteTestWeights / 32;
    std::vector<float> expected(kByteTestWeights);
    ggml_get_type_traits(GetParam())->to_float(row.data(), expected.data(), kByteTestWeights);
    on_every_target([&] {
      const ByteWeights weights = byte_weights(GetParam());
      ASSERT_NE(weights.expand, nullptr);
      const auto n_parts = static_cast<std::size_t>(weights.n_parts);
      Guarded<std::uint8_t> bytes(kByteTestWeights);
      Guarded<float> scales(kBlocks * 2 * n_parts * kRows);
      const ByteRow to{.bytes = bytes.data(),
                       .scales = scales.data() + 2,
                       .minima = scales.data() + n_parts * kRows + 2,
                       .block_stride = 2 * n_parts * kRows,
                       .part_stride = kRows};
      weights.expand(row.data(), kByteTestWeights, to);
      for (std::size_t k = 0; k < expected.size(); ++k) {
        if (!std::isfinite(expected[k])) continue;
        ASSERT_LE(bytes.data()[k], weights.largest) << k;
        const std::size_t at = k / 32 * to.block_stride + k % 32 * n_parts / 32 * to.part_stride;
        const double scaled = static_cast<double>(bytes.data()[k]) * to.scales[at];
        const double minimum = to.minima[at];
        ASSERT_NEAR(scaled - minimum, expected[k], 0x1p-22 * (std::abs(scaled) + std::abs(minimum)))
            << k;
      }
    });
  }
};

TEST_P(ExpandBytes, GivesWhatGgmlGives) {
  Guarded<std::byte> row(ggml_row_size(GetParam(), kByteTestWeights));
  fill_weights(GetParam(), 1, kByteTestWeights, 7, row.span());
  expect_as_ggml(row.span());
}

// Bytes that no quantiser writes: every code and every scale occurs.
TEST_P(ExpandBytes, GivesWhatGgmlGivesForAnyBytes) {
  Guarded<std::byte> row(ggml_row_size(GetParam(), kByteTestWeights));
  std::mt19937 random(8);
  for (int repeat = 0; repeat < 8; ++repeat) {
    for (std::byte& byte : row.span()) byte = static_cast<std::byte>(random());
    expect_as_ggml(row.span());
  }
}

INSTANTIATE_TEST_SUITE_P(All, ExpandBytes,
                         testing::Values(GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL,
                                         GGML_TYPE_IQ4_XS, GGML_TYPE_MXFP4, GGML_TYPE_Q4_K,
                                         GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ2_XXS),
                         [](const auto& type) { return std::string(ggml_type_name(type.param)); });

TEST(ExpandBytesOfFloats, IsNotThere) {
  EXPECT_EQ(byte_weights(GGML_TYPE_F32).expand, nullptr);
  EXPECT_EQ(byte_weights(GGML_TYPE_Q2_K).expand, nullptr);
}

}  // namespace
}  // namespace slipstream::turbo
