// A product with few columns: result = weights * columns, weights as plain rows of the file, columns
// rounded to 8 bits in blocks of 32.
//
// Decoding reads every weight once for a column, or for a few. Stock is fast at it from layouts of
// its own, which nobody else can read. Here the rows stay as they are, so that products with many
// columns (product.h) read the same memory. docs/products.md has both speeds.
//
//   DotTask task(product, packed);      // one thread; packed: n_dot_bytes(n_inner, n_columns)
//   task.pack_columns(thread_idx, n_threads);
//   ...                                 // all threads wait for each other
//   task.multiply(n_threads);
//
// Threads: as above. Errors: none.
#pragma once

#include <ggml.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "device/products/dot_kernels.h"
#include "device/products/product.h"

namespace slipstream::turbo {

[[nodiscard]] bool can_dot(ggml_type type);

// The memory for packed columns, aligned to cache lines.
[[nodiscard]] std::size_t n_dot_bytes(std::int64_t n_inner, std::int64_t n_columns);

class DotTask {
 public:
  // REQUIRES: can_dot(product.type); n_inner is a multiple of the type's block.
  DotTask(const Product& product, std::byte* packed);

  void pack_columns(int thread_idx, int n_threads);
  // Takes pieces of rows until there are none left.
  void multiply(int n_threads);

 private:
  void multiply_rows(std::int64_t first_row, std::int64_t n_rows) const;

  Product product_;
  DotColumn* packed_;  // [group of columns][piece of k][column]
  DotKernel kernel_;
  std::atomic<std::int64_t> next_row_ = 0;
};

}  // namespace slipstream::turbo
