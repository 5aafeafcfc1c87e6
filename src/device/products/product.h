// A product with many columns: result = weights * columns, weights of any type that ggml can
// expand, columns and result in f32.
//
// Stock's kernels expand a weight again for every column. Here a panel of rows is expanded once, to
// bf16 for AMX and elsewhere to bytes or f32, and multiplied with all columns from the second cache.
// So the more columns, the faster; few are multiplied by few_columns.h (docs/products.md).
//
// ggml's threads compute it in two steps, with a barrier between them:
//
//   ProductTask task(product, packed);      // one thread; packed: n_packed_bytes(product)
//   task.pack_columns(thread_idx, n_threads);
//   ...                                     // all threads wait for each other
//   task.multiply(n_threads);
//
// Threads: as above. Errors: std::bad_alloc, in multiply().
#pragma once

#include <ggml.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace slipstream::turbo {

struct Product {
  ggml_type type;
  const std::byte* weights;  // n_rows of n_inner
  std::size_t row_bytes;
  std::int64_t n_rows;
  std::int64_t n_inner;
  const float* columns;  // n_columns of n_inner
  std::size_t column_stride;
  std::int64_t n_columns;
  float* result;  // n_columns of n_rows
  std::size_t result_stride;
};

[[nodiscard]] bool can_multiply(ggml_type type);

// What weights and columns are multiplied as (panel_form.h).
enum class ProductForm : std::uint8_t { kTiles, kBytes, kFloats };
[[nodiscard]] ProductForm product_form(ggml_type type);

// Whether columns are packed alike for weights of both types.
[[nodiscard]] bool pack_alike(ggml_type a, ggml_type b);

// The memory for packed columns, aligned to cache lines. Enough for weights of any type.
[[nodiscard]] std::size_t n_packed_bytes(std::int64_t n_inner, std::int64_t n_columns);

class PanelForm;

class ProductTask {
 public:
  // REQUIRES: can_multiply(product.type); n_inner is a multiple of the type's block.
  ProductTask(const Product& product, std::byte* packed);

  void pack_columns(int thread_idx, int n_threads);
  // Takes panels until there are none left.
  void multiply(int n_threads);

 private:
  Product product_;
  std::byte* packed_;
  const PanelForm* form_;
  std::atomic<std::int64_t> next_row_ = 0;  // of the next panel
};

}  // namespace slipstream::turbo
