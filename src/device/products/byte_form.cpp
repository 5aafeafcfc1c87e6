#include <algorithm>
#include <cstring>

#include "device/products/byte_columns.h"
#include "device/products/byte_kernels.h"
#include "device/products/expand_bytes.h"
#include "device/products/panel_form.h"

namespace slipstream::turbo {
namespace {

// Rows of a group on the machine with the widest vectors.
constexpr std::int64_t kByteGroupMax = 16;
// Of one column of kByteSlice numbers: bytes, scales and sums.
constexpr std::size_t kSliceColumnBytes = kByteSlice + 2 * 4 * kByteSlice / kByteBlock;

class ByteForm final : public PanelForm {
 public:
  [[nodiscard]] std::int64_t block_columns() const override { return byte_shape().block_columns; }

  [[nodiscard]] std::size_t block_bytes(ggml_type type, std::int64_t n_inner) const override {
    return size(n_inner / kByteBlock) * column_block_bytes(type);
  }

  void pack_block(const Product& product, std::int64_t first, std::int64_t n,
                  std::byte* block) const override {
    if (n < block_columns()) std::memset(block, 0, block_bytes(product.type, product.n_inner));
    const int n_parts = byte_weights(product.type).n_parts;
    alignas(64) std::byte memory[kSliceColumnBytes];
    // Slices outside: what is written to the block stays in the first cache.
    for (std::int64_t k = 0; k < product.n_inner; k += kByteSlice) {
      const std::int64_t n_slice = std::min(kByteSlice, product.n_inner - k);
      const ByteColumns rounded = lay_byte_columns(memory, n_slice, 1);
      std::byte* to = block + size(k / kByteBlock) * column_block_bytes(product.type);
      for (std::int64_t c = 0; c < n; ++c) {
        round_column(product.columns + size(first + c) * product.column_stride + size(k), n_slice,
                     0, rounded);
        pack_byte_column(rounded, n_slice, n_parts, c, to);
      }
    }
  }

  [[nodiscard]] std::size_t panel_bytes(const Product& product, const Panel& panel) const override {
    return size(round_up(panel.n_rows, byte_shape().group_rows) / byte_shape().group_rows) *
           group_bytes(product, panel);
  }

  void pack_panel(const Product& product, const Panel& panel, std::byte* packed) const override {
    const std::int64_t n_group = byte_shape().group_rows;
    for (std::int64_t row = 0; row < panel.n_rows; row += n_group) {
      pack_group(product, panel, row, packed + size(row / n_group) * group_bytes(product, panel));
    }
  }

  void multiply_panel(const Product& product, const Panel& panel, const std::byte* packed,
                      const std::byte* columns) const override {
    const ByteShape shape = byte_shape();
    const ByteWeights weights = byte_weights(product.type);
    const std::size_t row_step = shape.group_block_bytes(weights.n_parts);
    const std::size_t column_step = shape.column_block_bytes(weights.n_parts);
    const std::int64_t n_blocks = product.n_inner / kByteBlock;
    for (std::int64_t column = 0; column < product.n_columns; column += shape.block_columns) {
      for (std::int64_t k = 0; k < panel.n_inner; k += kByteSlice) {
        const std::size_t first_block =
            size(column / shape.block_columns * n_blocks + (panel.first_inner + k) / kByteBlock);
        for (std::int64_t row = 0; row < panel.n_rows; row += shape.group_rows) {
          multiply_bytes({.group = packed +
                                   size(row / shape.group_rows) * group_bytes(product, panel) +
                                   size(k / kByteBlock) * row_step,
                          .columns = columns + first_block * column_step,
                          .n_blocks = std::min(kByteSlice, panel.n_inner - k) / kByteBlock,
                          .n_parts = weights.n_parts,
                          .largest_weight = weights.largest,
                          .n_rows = std::min(shape.group_rows, panel.n_rows - row),
                          .n_columns = std::min(shape.block_columns, product.n_columns - column),
                          .result = product.result + size(column) * product.result_stride +
                                    size(panel.first_row + row),
                          .result_stride = product.result_stride,
                          .is_first = panel.first_inner + k == 0});
        }
      }
    }
  }

 private:
  static std::size_t column_block_bytes(ggml_type type) {
    return byte_shape().column_block_bytes(byte_weights(type).n_parts);
  }
  static std::size_t group_bytes(const Product& product, const Panel& panel) {
    return size(panel.n_inner / kByteBlock) *
           byte_shape().group_block_bytes(byte_weights(product.type).n_parts);
  }

  // The group of rows that begins with row `first` of the panel.
  static void pack_group(const Product& product, const Panel& panel, std::int64_t first,
                         std::byte* group) {
    const ByteWeights weights = byte_weights(product.type);
    const std::int64_t n_group = byte_shape().group_rows;
    const std::size_t block_bytes = byte_shape().group_block_bytes(weights.n_parts);
    const std::int64_t n_rows = std::min(n_group, panel.n_rows - first);
    alignas(64) std::uint8_t rows[kByteGroupMax * kByteRowSlice];
    if (n_rows < n_group) {
      std::memset(group, 0, group_bytes(product, panel));
      std::memset(rows, 0, sizeof(rows));
    }
    for (std::int64_t k = 0; k < panel.n_inner; k += kByteRowSlice) {
      const std::int64_t n = std::min(kByteRowSlice, panel.n_inner - k);
      const std::size_t offset = ggml_row_size(product.type, panel.first_inner + k);
      std::byte* to = group + size(k / kByteBlock) * block_bytes;
      auto* scales = reinterpret_cast<float*>(to + size(n_group * kByteBlock));
      for (std::int64_t row = 0; row < n_rows; ++row) {
        weights.expand(
            product.weights + size(panel.first_row + first + row) * product.row_bytes + offset, n,
            {.bytes = rows + size(row * kByteRowSlice),
             .scales = scales + row,
             .minima = scales + weights.n_parts * n_group + row,
             .block_stride = block_bytes / sizeof(float),
             .part_stride = size(n_group)});
      }
      pack_byte_rows(rows, n, weights.n_parts, to);
    }
  }
};

}  // namespace

const PanelForm& byte_form() {
  static const ByteForm form;
  return form;
}

bool has_byte_form(ggml_type type) {
  const ByteWeights weights = byte_weights(type);
  return weights.expand != nullptr && weights.largest <= byte_shape().largest_weight;
}

}  // namespace slipstream::turbo
