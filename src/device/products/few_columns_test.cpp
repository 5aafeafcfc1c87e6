// Products with few columns are what the same sums of the rounded columns are in f64, on every
// instruction set.
#include "device/products/few_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/kernel_test_support.h"
#include "device/products/byte_columns.h"
#include "device/products/product_test_support.h"

namespace slipstream::turbo {
namespace {

constexpr ggml_type kDotTypes[] = {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_K,
                                   GGML_TYPE_Q5_K, GGML_TYPE_Q6_K, GGML_TYPE_IQ4_XS};

struct DotShape {
  std::int64_t n_rows;
  std::int64_t n_inner;
  std::int64_t n_columns;
};

// A product whose memory ends at unreadable pages, and what is expected of it.
class DotCase {
 public:
  DotCase(ggml_type type, const DotShape& shape)
      : type_(type),
        shape_(shape),
        weights_(ggml_row_size(type, shape.n_inner) * static_cast<std::size_t>(shape.n_rows)),
        columns_(static_cast<std::size_t>(shape.n_inner * shape.n_columns)),
        result_(static_cast<std::size_t>(shape.n_rows * shape.n_columns)) {
    fill_weights(type, shape.n_rows, shape.n_inner, 1, weights_.span());
    std::ranges::copy(random_floats(columns_.span().size(), 2), columns_.data());
    // Numbers whose sum is not near 0: what is taken off is large.
    for (float& number : columns_.span()) number += 0.5F;
  }

  // The expected sums are those of these weights.
  std::span<std::byte> weights() { return weights_.span(); }

  void run(int n_threads) {
    std::ranges::fill(result_.span(), std::nanf(""));
    Guarded<std::byte> packed(n_dot_bytes(shape_.n_inner, shape_.n_columns));
    std::ranges::fill(packed.span(), std::byte{0x55});
    DotTask task({.type = type_,
                  .weights = weights_.data(),
                  .row_bytes = ggml_row_size(type_, shape_.n_inner),
                  .n_rows = shape_.n_rows,
                  .n_inner = shape_.n_inner,
                  .columns = columns_.data(),
                  .column_stride = static_cast<std::size_t>(shape_.n_inner),
                  .n_columns = shape_.n_columns,
                  .result = result_.data(),
                  .result_stride = static_cast<std::size_t>(shape_.n_rows)},
                 packed.data());
    multiply_on_threads(task, n_threads);
  }

  void check() {
    if (rounded_.empty()) expect();
    for (std::size_t i = 0; i < rounded_.size(); ++i) {
      ASSERT_NEAR(result_.data()[i], rounded_[i], 0x1p-20 * magnitude_[i]) << name(i);
    }
  }

  // What rounding the columns costs: half a step of each block at most, independent of each other.
  // Six standard deviations.
  void check_rounding() {
    for (std::size_t i = 0; i < rounded_.size(); ++i) {
      ASSERT_NEAR(result_.data()[i], exact_[i], 6 * deviation_[i] + 0x1p-20 * magnitude_[i])
          << name(i);
    }
  }

 private:
  std::string name(std::size_t i) const {
    const auto n_rows = static_cast<std::size_t>(shape_.n_rows);
    return testing::PrintToString(ggml_type_name(type_)) + " " + std::to_string(n_rows) + "x" +
           std::to_string(shape_.n_inner) + ", " + std::to_string(shape_.n_columns) +
           " columns: row " + std::to_string(i % n_rows) + " column " + std::to_string(i / n_rows);
  }

  void expect() {
    const auto n_inner = static_cast<std::size_t>(shape_.n_inner);
    const auto n_rows = static_cast<std::size_t>(shape_.n_rows);
    Guarded<std::byte> memory(n_byte_column_bytes(shape_.n_inner, shape_.n_columns));
    const ByteColumns bytes = lay_byte_columns(memory.data(), shape_.n_inner, shape_.n_columns);
    for (std::int64_t c = 0; c < shape_.n_columns; ++c) {
      round_column(columns_.data() + c * shape_.n_inner, shape_.n_inner, c, bytes);
    }
    rounded_.resize(result_.span().size());
    exact_ = magnitude_ = deviation_ = rounded_;
    std::vector<float> row(n_inner);
    for (std::size_t r = 0; r < n_rows; ++r) {
      ggml_get_type_traits(type_)->to_float(
          weights_.data() + r * ggml_row_size(type_, shape_.n_inner), row.data(), shape_.n_inner);
      for (std::size_t c = 0; c < static_cast<std::size_t>(shape_.n_columns); ++c) {
        double variance = 0;
        const std::size_t at = c * n_rows + r;
        for (std::size_t k = 0; k < n_inner; ++k) {
          const std::size_t idx = c * static_cast<std::size_t>(bytes.n_padded) + k;
          const double scale = bytes.scales[idx / kByteBlock];
          const double term = row[k] * scale * bytes.numbers[idx];
          rounded_[at] += term;
          magnitude_[at] += std::abs(term);
          exact_[at] += double{row[k]} * columns_.data()[c * n_inner + k];
          variance += row[k] * scale * row[k] * scale / 12;
        }
        deviation_[at] = std::sqrt(variance);
      }
    }
  }

  ggml_type type_;
  DotShape shape_;
  Guarded<std::byte> weights_;
  Guarded<float> columns_;
  Guarded<float> result_;
  std::vector<double> rounded_;  // of rounded columns
  std::vector<double> exact_;
  std::vector<double> magnitude_;
  std::vector<double> deviation_;  // of what rounding adds
};

void expect_dots(ggml_type type, const DotShape& shape) {
  DotCase product(type, shape);
  on_every_target([&] {
    product.run(1);
    product.check();
  });
  product.run(3);
  product.check();
}

class DotsOfType : public testing::TestWithParam<ggml_type> {};

TEST_P(DotsOfType, AreSumsInF64) {
  ASSERT_TRUE(can_dot(GetParam()));
  for (const std::int64_t n_columns : {1, 2, 3, 4, 5, 8, 13}) {
    expect_dots(GetParam(), {.n_rows = 19, .n_inner = 768, .n_columns = n_columns});
  }
}

TEST_P(DotsOfType, AreNearThoseOfColumnsThatAreNotRounded) {
  DotCase product(GetParam(), {.n_rows = 64, .n_inner = 1024, .n_columns = 4});
  product.run(1);
  product.check();
  product.check_rounding();
}

// Bytes that a quantiser seldom writes, such as -128, must not overflow. Where they would make a
// scale large or no number, the byte stays.
TEST_P(DotsOfType, TakeExtremeWeights) {
  const ggml_type type = GetParam();
  constexpr std::int64_t kInner = 512;
  constexpr std::byte kExtremes[] = {std::byte{0x80}, std::byte{0xFF}, std::byte{0x7F}};
  DotCase product(type, {.n_rows = 3, .n_inner = kInner, .n_columns = 5});
  const std::size_t row_bytes = ggml_row_size(type, kInner);
  std::vector<float> expanded(kInner);
  for (std::size_t row = 0; row < std::size(kExtremes); ++row) {
    const std::span<std::byte> weights = product.weights().subspan(row * row_bytes, row_bytes);
    for (std::byte& weight : weights) {
      const std::byte before = weight;
      weight = kExtremes[row];
      ggml_get_type_traits(type)->to_float(weights.data(), expanded.data(), kInner);
      // NaN is not below either.
      if (!std::ranges::all_of(expanded, [](float x) { return std::abs(x) < 100; })) {
        weight = before;
      }
    }
  }
  on_every_target([&] {
    product.run(1);
    product.check();
  });
}

INSTANTIATE_TEST_SUITE_P(All, DotsOfType, testing::ValuesIn(kDotTypes),
                         [](const auto& type) { return std::string(ggml_type_name(type.param)); });

TEST(Dots, HaveAnyNumberOfRowsAndColumns) {
  for (const std::int64_t n_rows : {1, 7, 8, 9, 65, 300}) {
    for (const std::int64_t n_columns : {1, 3, 7, 9, 33}) {
      expect_dots(GGML_TYPE_Q8_0, {.n_rows = n_rows, .n_inner = 96, .n_columns = n_columns});
    }
  }
}

// k that is no multiple of a piece's, and k of several slices.
TEST(Dots, HaveAnyInnerSize) {
  for (const std::int64_t n_inner : {32, 64, 224, 288, 1120, 2016}) {
    expect_dots(GGML_TYPE_Q8_0, {.n_rows = 5, .n_inner = n_inner, .n_columns = 1});
    expect_dots(GGML_TYPE_Q4_0, {.n_rows = 5, .n_inner = n_inner, .n_columns = 8});
  }
  expect_dots(GGML_TYPE_Q8_0, {.n_rows = 3, .n_inner = 12288 + 544, .n_columns = 1});
  expect_dots(GGML_TYPE_Q6_K, {.n_rows = 3, .n_inner = 4096 + 256, .n_columns = 8});
}

TEST(Dots, RefuseTypesWithoutKernels) {
  EXPECT_FALSE(can_dot(GGML_TYPE_I32));
  EXPECT_FALSE(can_dot(GGML_TYPE_IQ2_XXS));
}

}  // namespace
}  // namespace slipstream::turbo
