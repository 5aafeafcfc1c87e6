// PanelForm: how weights and columns are packed for a product, and how they are multiplied.
//
//   tiles   bf16 on AMX, which rounds both to bf16 (panel_kernels.h)
//   bytes   columns rounded to 8 bits, weights as they are, where the type's weights are small
//           integers with scales (byte_kernels.h)
//   floats  f32, for everything else (panel_kernels.h)
//
// Weights are packed a panel at a time, columns once for all panels, in blocks.
//
// Threads: forms have no state. Errors: std::bad_alloc, in pack_panel().
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/products/product.h"

namespace slipstream::turbo {

// Rows [first_row, first_row + n_rows), k [first_inner, first_inner + n_inner).
struct Panel {
  std::int64_t first_row;
  std::int64_t n_rows;
  std::int64_t first_inner;
  std::int64_t n_inner;
};

class PanelForm {
 public:
  PanelForm() = default;
  PanelForm(const PanelForm&) = delete;
  PanelForm& operator=(const PanelForm&) = delete;
  virtual ~PanelForm() = default;

  [[nodiscard]] virtual std::int64_t block_columns() const = 0;
  [[nodiscard]] virtual std::size_t block_bytes(ggml_type type, std::int64_t n_inner) const = 0;
  // Packs columns [first, first + n) as a block. Those that do not exist become 0.
  virtual void pack_block(const Product& product, std::int64_t first, std::int64_t n,
                          std::byte* block) const = 0;

  [[nodiscard]] virtual std::size_t panel_bytes(const Product& product,
                                                const Panel& panel) const = 0;
  virtual void pack_panel(const Product& product, const Panel& panel, std::byte* packed) const = 0;
  // Multiplies a packed panel with all blocks of columns.
  virtual void multiply_panel(const Product& product, const Panel& panel, const std::byte* packed,
                              const std::byte* columns) const = 0;
};

[[nodiscard]] const PanelForm& tile_form();
[[nodiscard]] const PanelForm& byte_form();
[[nodiscard]] const PanelForm& float_form();

// The form in which weights of a type are multiplied.
[[nodiscard]] const PanelForm& panel_form(ggml_type type);
// k of a panel of n_rows rows, so that it stays in the second cache.
[[nodiscard]] std::int64_t panel_inner(std::int64_t n_rows, std::int64_t n_inner);

// Whether this machine has bytes for the type, and has them faster than floats.
[[nodiscard]] bool has_byte_form(ggml_type type);

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
constexpr std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

// Expands n_inner k of rows to floats, kFloatSlice apart, in memory of this thread. Rows behind the
// last become 0, as do k behind n_inner, up to n_padded.
// REQUIRES: n_padded <= kFloatSlice.
[[nodiscard]] const float* expand_rows(const Product& product, std::int64_t first_row,
                                       std::int64_t n_rows, std::int64_t first_inner,
                                       std::int64_t n_inner, std::int64_t n_padded);

}  // namespace slipstream::turbo
