#include <algorithm>

#include "device/attention/scratch.h"
#include "device/products/expand_row.h"
#include "device/products/panel_form.h"
#include "device/products/panel_kernels.h"

namespace slipstream::turbo {

const float* expand_rows(const Product& product, std::int64_t first_row, std::int64_t n_rows,
                         std::int64_t first_inner, std::int64_t n_inner, std::int64_t n_padded) {
  // Kept from product to product.
  thread_local Scratch<float> scratch;
  scratch.resize(size(n_rows), size(kFloatSlice));
  float* rows = scratch.data();
  const RowExpander expand = row_expander(product.type);
  const std::size_t offset = ggml_row_size(product.type, first_inner);
  const std::int64_t n = std::clamp<std::int64_t>(product.n_rows - first_row, 0, n_rows);
  for (std::int64_t row = 0; row < n; ++row) {
    const std::byte* from = product.weights + size(first_row + row) * product.row_bytes + offset;
    float* to = rows + size(row * kFloatSlice);
    expand(from, to, n_inner);
    std::fill(to + n_inner, to + n_padded, 0.0F);
  }
  for (std::int64_t row = n; row < n_rows; ++row) {
    std::fill_n(rows + size(row * kFloatSlice), n_padded, 0.0F);
  }
  return rows;
}

}  // namespace slipstream::turbo
