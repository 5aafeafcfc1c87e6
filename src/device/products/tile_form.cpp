#include <algorithm>
#include <cstring>

#include "device/products/amx_product.h"
#include "device/products/panel_form.h"
#include "device/products/panel_kernels.h"
#include "device/tile_registers.h"

namespace slipstream::turbo {
namespace {

// k of the tiles of columns that stay in the first cache while a panel passes by.
constexpr std::int64_t kTileSlice = 512;

class TileForm final : public PanelForm {
 public:
  [[nodiscard]] std::int64_t block_columns() const override { return kTileSide; }

  [[nodiscard]] std::size_t block_bytes(ggml_type /*type*/, std::int64_t n_inner) const override {
    return size(kTileSide * round_up(n_inner, kTileInner)) * sizeof(std::uint16_t);
  }

  void pack_block(const Product& product, std::int64_t first, std::int64_t n,
                  std::byte* block) const override {
    if (n < kTileSide) std::memset(block, 0, block_bytes(product.type, product.n_inner));
    for (std::int64_t c = 0; c < n; ++c) {
      pack_tile_column(product.columns + size(first + c) * product.column_stride, product.n_inner,
                       c, reinterpret_cast<std::uint16_t*>(block));
    }
  }

  [[nodiscard]] std::size_t panel_bytes(const Product& /*product*/,
                                        const Panel& panel) const override {
    return size(round_up(panel.n_rows, kTileBlockSide) * round_up(panel.n_inner, kTileInner)) *
           sizeof(std::uint16_t);
  }

  void pack_panel(const Product& product, const Panel& panel, std::byte* packed) const override {
    const std::int64_t n_padded = round_up(panel.n_inner, kTileInner);
    auto* to = reinterpret_cast<std::uint16_t*>(packed);
    for (std::int64_t row = 0; row < panel.n_rows; row += kTileSide) {
      for (std::int64_t k = 0; k < panel.n_inner; k += kFloatSlice) {
        const std::int64_t n = std::min(kFloatSlice, panel.n_inner - k);
        const std::int64_t n_slice = round_up(n, kTileInner);
        const float* rows = expand_rows(product, panel.first_row + row, kTileSide,
                                        panel.first_inner + k, n, n_slice);
        pack_tiles(rows, n_slice, to + size(row * n_padded + k * kTileSide));
      }
    }
  }

  void multiply_panel(const Product& product, const Panel& panel, const std::byte* packed,
                      const std::byte* columns) const override {
    const TileScope scope(true, product_tile_config());
    const auto* rows = reinterpret_cast<const std::uint16_t*>(packed);
    const auto* tiles = reinterpret_cast<const std::uint16_t*>(columns);
    const std::int64_t n_inner = round_up(product.n_inner, kTileInner);
    const std::int64_t n_panel_inner = round_up(panel.n_inner, kTileInner);
    for (std::int64_t column = 0; column < product.n_columns; column += kTileBlockSide) {
      for (std::int64_t k = 0; k < n_panel_inner; k += kTileSlice) {
        const std::int64_t n_slice = std::min(kTileSlice, n_panel_inner - k);
        for (std::int64_t row = 0; row < panel.n_rows; row += kTileBlockSide) {
          amx_multiply_tiles(
              {.rows = rows + size(row * n_panel_inner + k * kTileSide),
               .row_tile_stride = size(n_panel_inner * kTileSide),
               .n_rows = std::min(kTileBlockSide, panel.n_rows - row),
               .columns = tiles + size(column * n_inner + (panel.first_inner + k) * kTileSide),
               .column_tile_stride = size(n_inner * kTileSide),
               .n_columns = std::min(kTileBlockSide, product.n_columns - column),
               .n_tiles = n_slice / kTileInner,
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

const PanelForm& tile_form() {
  static const TileForm form;
  return form;
}

}  // namespace slipstream::turbo
