// Products of every type and of odd shapes are what the same sums in f64 are, within the rounding
// of the kernels: to bf16 on AMX, of columns to 8 bits as bytes, of f32 otherwise.
#include "device/products/product.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/attention/kernel_choice.h"
#include "device/kernel_test_support.h"
#include "device/products/product_test_support.h"
#include "device/tile_registers.h"

namespace slipstream::turbo {
namespace {

struct ProductShape {
  std::int64_t n_rows;
  std::int64_t n_inner;
  std::int64_t n_columns;
};

// A product whose memory ends at unreadable pages, and what is expected of it.
class ProductCase {
 public:
  ProductCase(ggml_type type, const ProductShape& shape)
      : type_(type),
        shape_(shape),
        weights_(ggml_row_size(type, shape.n_inner) * static_cast<std::size_t>(shape.n_rows)),
        columns_(static_cast<std::size_t>(shape.n_inner * shape.n_columns)),
        result_(static_cast<std::size_t>(shape.n_rows * shape.n_columns)) {
    fill_weights(type, shape.n_rows, shape.n_inner, 1, weights_.span());
    const std::vector<float> columns = random_floats(columns_.span().size(), 2);
    std::ranges::copy(columns, columns_.data());
    expect();
  }

  void run(int n_threads) {
    std::ranges::fill(result_.span(), std::nanf(""));
    Guarded<std::byte> packed((n_packed_bytes(shape_.n_inner, shape_.n_columns) + 63) / 64 * 64);
    const std::size_t row_bytes = ggml_row_size(type_, shape_.n_inner);
    ProductTask task({.type = type_,
                      .weights = weights_.data(),
                      .row_bytes = row_bytes,
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

  // As tiles the expected weights are those rounded to bf16, because their errors are not
  // independent where a type has few levels. The columns' errors are: four standard deviations, as
  // if each were as large as that of the worst mantissa, 2^-8. As bytes the expected columns are
  // the rounded ones, and nothing else is rounded.
  void check(ProductForm form) {
    ASSERT_EQ(product_form(type_), form) << ggml_type_name(type_);
    const std::vector<double>& expected = form == ProductForm::kTiles   ? of_bf16_
                                          : form == ProductForm::kBytes ? of_bytes_
                                                                        : exact_;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double rounding =
          form == ProductForm::kTiles ? 4 * 0x1p-8 * std::sqrt(1.0 / 3) * length_[i] : 0;
      ASSERT_NEAR(result_.data()[i], expected[i], rounding + 0x1p-20 * magnitude_[i])
          << ggml_type_name(type_) << ' ' << shape_.n_rows << 'x' << shape_.n_inner << ' '
          << shape_.n_columns << " columns: row " << i % static_cast<std::size_t>(shape_.n_rows)
          << " column " << i / static_cast<std::size_t>(shape_.n_rows);
    }
  }

 private:
  // Column c, rounded to 8 bits in blocks of 32.
  std::vector<double> rounded_column(std::size_t c) {
    const auto n_inner = static_cast<std::size_t>(shape_.n_inner);
    const auto column = columns_.span().subspan(c * n_inner, n_inner);
    std::vector<double> rounded;
    for (std::size_t k = 0; k < n_inner; k += 32) {
      const auto block = column.subspan(k, std::min<std::size_t>(32, n_inner - k));
      float largest = 0;
      for (const float number : block) largest = std::max(largest, std::abs(number));
      for (const float number : block) {
        rounded.push_back(std::nearbyint(number * (127 / largest)) * double{largest / 127});
      }
    }
    return rounded;
  }

  void expect() {
    const auto n_inner = static_cast<std::size_t>(shape_.n_inner);
    std::vector<float> row(n_inner);
    std::vector<std::vector<double>> rounded_columns;
    for (std::size_t c = 0; c < static_cast<std::size_t>(shape_.n_columns); ++c) {
      rounded_columns.push_back(rounded_column(c));
    }
    const auto n_rows = static_cast<std::size_t>(shape_.n_rows);
    exact_.resize(result_.span().size());
    of_bf16_ = of_bytes_ = length_ = magnitude_ = exact_;
    for (std::size_t r = 0; r < n_rows; ++r) {
      ggml_get_type_traits(type_)->to_float(
          weights_.data() + r * ggml_row_size(type_, shape_.n_inner), row.data(), shape_.n_inner);
      for (std::size_t c = 0; c < static_cast<std::size_t>(shape_.n_columns); ++c) {
        double sum = 0;
        double sum_of_bf16 = 0;
        double sum_of_bytes = 0;
        double squares = 0;
        double magnitude = 0;
        for (std::size_t k = 0; k < n_inner; ++k) {
          const double number = columns_.data()[c * n_inner + k];
          const double term = row[k] * number;
          sum += term;
          sum_of_bf16 += ggml_bf16_to_fp32(ggml_fp32_to_bf16(row[k])) * number;
          sum_of_bytes += row[k] * rounded_columns[c][k];
          squares += term * term;
          magnitude += std::abs(term);
        }
        exact_[c * n_rows + r] = sum;
        of_bf16_[c * n_rows + r] = sum_of_bf16;
        of_bytes_[c * n_rows + r] = sum_of_bytes;
        length_[c * n_rows + r] = std::sqrt(squares);
        magnitude_[c * n_rows + r] = magnitude;
      }
    }
  }

  ggml_type type_;
  ProductShape shape_;
  Guarded<std::byte> weights_;
  Guarded<float> columns_;
  Guarded<float> result_;
  std::vector<double> exact_;
  std::vector<double> of_bf16_;   // of weights in bf16
  std::vector<double> of_bytes_;  // of columns in 8 bits
  std::vector<double> length_;    // of the vector of products
  std::vector<double> magnitude_;
};

// What a type is multiplied as on one instruction set without AMX.
ProductForm expected_form(ggml_type type, std::int64_t target) {
#if HWY_ARCH_X86
  const bool has_vnni = target <= HWY_AVX3_DL;
  switch (type) {
    case GGML_TYPE_Q8_0:
    case GGML_TYPE_IQ4_XS: return has_vnni ? ProductForm::kBytes : ProductForm::kFloats;
    case GGML_TYPE_Q4_0:
    case GGML_TYPE_Q4_K:
    case GGML_TYPE_Q5_K:
    case GGML_TYPE_Q6_K:
    case GGML_TYPE_IQ2_XXS:
    case GGML_TYPE_MXFP4: return target <= HWY_AVX2 ? ProductForm::kBytes : ProductForm::kFloats;
    default: break;
  }
#endif
  (void)type;
  (void)target;
  return ProductForm::kFloats;
}

std::int64_t best_target() {
  const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets & -targets;
}

// On AMX with each instruction set around it, and on each instruction set alone.
void expect_product(ggml_type type, const ProductShape& shape) {
  ProductCase product(type, shape);
  if (has_amx_bf16()) {
    on_every_target([&] {
      product.run(1);
      product.check(ProductForm::kTiles);
    });
    product.run(3);
    product.check(ProductForm::kTiles);
  }
#if HWY_ARCH_X86
  ASSERT_TRUE(limit_kernels("avx512"));
#endif
  on_every_target([&] {
    product.run(1);
    product.check(expected_form(type, best_target()));
  });
  product.run(3);
  product.check(expected_form(type, best_target()));
#if HWY_ARCH_X86
  ASSERT_TRUE(limit_kernels("amx"));
#endif
}

class ProductOfType : public testing::TestWithParam<ggml_type> {};

TEST_P(ProductOfType, IsTheSumInF64) {
  ASSERT_TRUE(can_multiply(GetParam()));
  expect_product(GetParam(), {.n_rows = 67, .n_inner = 768, .n_columns = 37});
}

INSTANTIATE_TEST_SUITE_P(All, ProductOfType, testing::ValuesIn(kProductTypes),
                         [](const auto& type) { return std::string(ggml_type_name(type.param)); });

TEST(Product, HasAnyNumberOfRowsAndColumns) {
  for (const std::int64_t n_rows : {1, 15, 16, 17, 33, 300}) {
    for (const std::int64_t n_columns : {1, 2, 15, 17, 33}) {
      expect_product(GGML_TYPE_Q8_0, {.n_rows = n_rows, .n_inner = 96, .n_columns = n_columns});
    }
  }
  expect_product(GGML_TYPE_Q8_0, {.n_rows = 40, .n_inner = 64, .n_columns = 511});
  expect_product(GGML_TYPE_Q4_0, {.n_rows = 40, .n_inner = 96, .n_columns = 511});
}

// k that is no multiple of a tile's, of a slice's or of a panel's.
TEST(Product, HasAnyInnerSize) {
  for (const std::int64_t n_inner : {1, 31, 33, 255, 257, 513, 544, 1100}) {
    expect_product(GGML_TYPE_F16, {.n_rows = 35, .n_inner = n_inner, .n_columns = 19});
  }
  expect_product(GGML_TYPE_Q4_0, {.n_rows = 260, .n_inner = 8192 + 544, .n_columns = 5});
  expect_product(GGML_TYPE_Q6_K, {.n_rows = 9, .n_inner = 8192 + 256, .n_columns = 5});
}

TEST(Product, RefusesTypesWithoutNumbers) { EXPECT_FALSE(can_multiply(GGML_TYPE_I32)); }

}  // namespace
}  // namespace slipstream::turbo
