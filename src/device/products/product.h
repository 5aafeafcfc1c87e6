// A product with many columns: result = weights * columns, weights of any type that ggml can
// expand, columns and result in f32.
//
// Stock's kernels expand a weight again for every column. Here a panel of rows is expanded once, to
// bf16 for AMX and to f32 elsewhere, and multiplied with all columns from the second cache. So the
// more columns, the faster; few are multiplied by few_columns.h (docs/products.md).
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

#include "device/products/expand_row.h"

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

// The memory for packed columns, aligned to cache lines.
[[nodiscard]] std::size_t n_packed_bytes(std::int64_t n_inner, std::int64_t n_columns);

class ProductTask {
 public:
  // REQUIRES: can_multiply(product.type); n_inner is a multiple of the type's block.
  ProductTask(const Product& product, std::byte* packed);

  void pack_columns(int thread_idx, int n_threads);
  // Takes panels until there are none left.
  void multiply(int n_threads);

 private:
  struct Panel;
  void expand_rows(std::int64_t first_row, std::int64_t n_rows, std::int64_t first_inner,
                   std::int64_t n_inner, std::int64_t n_padded, float* rows) const;
  void pack_panel(const Panel& panel, std::byte* memory) const;
  void multiply_tiles(const Panel& panel, const std::byte* memory) const;
  void multiply_groups(const Panel& panel, const std::byte* memory) const;

  Product product_;
  std::byte* packed_;
  RowExpander expand_;
  bool uses_tiles_;
  std::atomic<std::int64_t> next_row_ = 0;  // of the next panel
};

}  // namespace slipstream::turbo
