#include <algorithm>
#include <cstring>

#include "device/products/panel_form.h"
#include "device/products/panel_kernels.h"

namespace slipstream::turbo {
namespace {

class FloatForm final : public PanelForm {
 public:
  [[nodiscard]] std::int64_t block_columns() const override { return float_shape().block_columns; }

  [[nodiscard]] std::size_t block_bytes(ggml_type /*type*/, std::int64_t n_inner) const override {
    return size(block_columns() * round_up(n_inner, kFloatSlice)) * sizeof(float);
  }

  void pack_block(const Product& product, std::int64_t first, std::int64_t n,
                  std::byte* block) const override {
    const std::int64_t n_block = block_columns();
    if (n < n_block) std::memset(block, 0, block_bytes(product.type, product.n_inner));
    auto* to = reinterpret_cast<float*>(block);
    for (std::int64_t c = 0; c < n; ++c) {
      const float* column = product.columns + size(first + c) * product.column_stride;
      for (std::int64_t k = 0; k < product.n_inner; k += kFloatSlice) {
        std::memcpy(to + size(k * n_block + c * kFloatSlice), column + k,
                    size(std::min(kFloatSlice, product.n_inner - k)) * sizeof(float));
      }
    }
  }

  [[nodiscard]] std::size_t panel_bytes(const Product& /*product*/,
                                        const Panel& panel) const override {
    return size(round_up(panel.n_rows, float_shape().group_rows) * panel.n_inner) * sizeof(float);
  }

  void pack_panel(const Product& product, const Panel& panel, std::byte* packed) const override {
    const std::int64_t group = float_shape().group_rows;
    auto* to = reinterpret_cast<float*>(packed);
    for (std::int64_t row = 0; row < panel.n_rows; row += group) {
      for (std::int64_t k = 0; k < panel.n_inner; k += kFloatSlice) {
        const std::int64_t n = std::min(kFloatSlice, panel.n_inner - k);
        const float* rows =
            expand_rows(product, panel.first_row + row, group, panel.first_inner + k, n, n);
        pack_floats(rows, n, to + size(row * panel.n_inner + k * group));
      }
    }
  }

  void multiply_panel(const Product& product, const Panel& panel, const std::byte* packed,
                      const std::byte* columns) const override {
    const auto [group_rows, n_block] = float_shape();
    const auto* groups = reinterpret_cast<const float*>(packed);
    const auto* blocks = reinterpret_cast<const float*>(columns);
    const std::int64_t n_inner = round_up(product.n_inner, kFloatSlice);
    for (std::int64_t column = 0; column < product.n_columns; column += n_block) {
      for (std::int64_t k = 0; k < panel.n_inner; k += kFloatSlice) {
        for (std::int64_t row = 0; row < panel.n_rows; row += group_rows) {
          multiply_floats(
              {.group = groups + size(row * panel.n_inner + k * group_rows),
               .block = blocks + size(column * n_inner + (panel.first_inner + k) * n_block),
               .n_inner = std::min(kFloatSlice, panel.n_inner - k),
               .n_rows = std::min(group_rows, panel.n_rows - row),
               .n_columns = std::min(n_block, product.n_columns - column),
               .result = product.result + size(column) * product.result_stride +
                         size(panel.first_row + row),
               .result_stride = product.result_stride,
               .is_first = panel.first_inner + k == 0});
        }
      }
    }
  }
};

}  // namespace

const PanelForm& float_form() {
  static const FloatForm form;
  return form;
}

}  // namespace slipstream::turbo
