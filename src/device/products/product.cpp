#include "device/products/product.h"

#include <algorithm>
#include <cstring>

#include "device/attention/kernel_choice.h"
#include "device/attention/scratch.h"
#include "device/products/amx_product.h"
#include "device/products/panel_kernels.h"

namespace slipstream::turbo {
namespace {

// Numbers of a panel: a quarter of a second cache of 2 MB, in bf16. Of the rest, most is for
// columns and results that pass by.
constexpr std::int64_t kPanelNumbers = std::int64_t{1} << 18;
constexpr std::int64_t kPanelRowsMax = 256;
// k of the tiles of columns that stay in the first cache while a panel passes by.
constexpr std::int64_t kTileSlice = 512;
// Panels for each thread, so that one that is late costs little.
constexpr std::int64_t kPanelsPerThread = 4;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
constexpr std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

bool uses_tiles() { return use_amx() && has_amx_bf16(); }

// The memory in which a thread expands panels. It is kept from product to product.
struct PanelScratch {
  Scratch<float> rows;       // kFloatSlice apart
  Scratch<std::byte> panel;  // packed
};

PanelScratch& scratch_of_thread() {
  thread_local PanelScratch scratch;
  return scratch;
}

}  // namespace

// Rows [first_row, first_row + n_rows), k [first_inner, first_inner + n_inner).
struct ProductTask::Panel {
  std::int64_t first_row;
  std::int64_t n_rows;
  std::int64_t first_inner;
  std::int64_t n_inner;
};

bool can_multiply(ggml_type type) {
  return row_expander(type) != nullptr && kFloatSlice % ggml_blck_size(type) == 0;
}

std::size_t n_packed_bytes(std::int64_t n_inner, std::int64_t n_columns) {
  if (uses_tiles()) {
    return size(round_up(n_columns, kTileSide) * round_up(n_inner, kTileInner)) *
           sizeof(std::uint16_t);
  }
  return size(round_up(n_columns, float_shape().block_columns) * round_up(n_inner, kFloatSlice)) *
         sizeof(float);
}

ProductTask::ProductTask(const Product& product, std::byte* packed)
    : product_(product),
      packed_(packed),
      expand_(row_expander(product.type)),
      uses_tiles_(uses_tiles()) {}

void ProductTask::pack_columns(int thread_idx, int n_threads) {
  const std::int64_t n_inner = product_.n_inner;
  const std::int64_t block = uses_tiles_ ? kTileSide : float_shape().block_columns;
  const std::int64_t n_padded = round_up(n_inner, uses_tiles_ ? kTileInner : kFloatSlice);
  const std::int64_t n_blocks = (product_.n_columns + block - 1) / block;
  const std::size_t block_bytes =
      size(block * n_padded) * (uses_tiles_ ? sizeof(std::uint16_t) : sizeof(float));
  for (std::int64_t i = thread_idx; i < n_blocks; i += n_threads) {
    std::byte* to = packed_ + size(i) * block_bytes;
    const std::int64_t n = std::min(block, product_.n_columns - i * block);
    if (n < block) std::memset(to, 0, block_bytes);
    for (std::int64_t c = 0; c < n; ++c) {
      const float* column = product_.columns + size(i * block + c) * product_.column_stride;
      if (uses_tiles_) {
        pack_tile_column(column, n_inner, c, reinterpret_cast<std::uint16_t*>(to));
        continue;
      }
      for (std::int64_t k = 0; k < n_inner; k += kFloatSlice) {
        std::memcpy(reinterpret_cast<float*>(to) + size(k * block + c * kFloatSlice), column + k,
                    size(std::min(kFloatSlice, n_inner - k)) * sizeof(float));
      }
    }
  }
}

void ProductTask::multiply(int n_threads) {
  const std::int64_t group = uses_tiles_ ? kTileBlockSide : float_shape().group_rows;
  const std::int64_t n_panel_rows =
      std::clamp(round_up(product_.n_rows / (kPanelsPerThread * n_threads), kTileBlockSide),
                 kTileBlockSide, kPanelRowsMax);
  const std::int64_t n_panel_inner =
      std::min(product_.n_inner, kPanelNumbers / n_panel_rows / kTileSlice * kTileSlice);
  PanelScratch& scratch = scratch_of_thread();
  scratch.rows.resize(size(std::max(group, kTileSide)), size(kFloatSlice));
  scratch.panel.resize(size(round_up(n_panel_rows, group) * round_up(n_panel_inner, kTileInner)) *
                       (uses_tiles_ ? sizeof(std::uint16_t) : sizeof(float)));
  const TileScope tiles(uses_tiles_, product_tile_config());
  for (;;) {
    const std::int64_t first = next_row_.fetch_add(n_panel_rows, std::memory_order_relaxed);
    if (first >= product_.n_rows) return;
    for (std::int64_t k = 0; k < product_.n_inner; k += n_panel_inner) {
      const Panel panel{.first_row = first,
                        .n_rows = std::min(n_panel_rows, product_.n_rows - first),
                        .first_inner = k,
                        .n_inner = std::min(n_panel_inner, product_.n_inner - k)};
      pack_panel(panel, scratch.panel.data());
      uses_tiles_ ? multiply_tiles(panel, scratch.panel.data())
                  : multiply_groups(panel, scratch.panel.data());
    }
  }
}

// Expands rows, kFloatSlice floats apart. Rows behind the last of n_rows and k behind n_inner, up to
// n_padded, become 0.
void ProductTask::expand_rows(std::int64_t first_row, std::int64_t n_rows, std::int64_t first_inner,
                              std::int64_t n_inner, std::int64_t n_padded, float* rows) const {
  const std::size_t offset = ggml_row_size(product_.type, first_inner);
  const std::int64_t n = std::clamp<std::int64_t>(product_.n_rows - first_row, 0, n_rows);
  for (std::int64_t row = 0; row < n; ++row) {
    const std::byte* from = product_.weights + size(first_row + row) * product_.row_bytes + offset;
    float* to = rows + size(row * kFloatSlice);
    expand_(from, to, n_inner);
    std::fill(to + n_inner, to + n_padded, 0.0F);
  }
  for (std::int64_t row = n; row < n_rows; ++row) {
    std::fill_n(rows + size(row * kFloatSlice), n_padded, 0.0F);
  }
}

void ProductTask::pack_panel(const Panel& panel, std::byte* memory) const {
  const std::int64_t group = uses_tiles_ ? kTileSide : float_shape().group_rows;
  const std::int64_t step = uses_tiles_ ? kTileInner : 1;
  const std::int64_t n_padded = round_up(panel.n_inner, step);
  float* rows = scratch_of_thread().rows.data();
  for (std::int64_t row = 0; row < panel.n_rows; row += group) {
    for (std::int64_t k = 0; k < panel.n_inner; k += kFloatSlice) {
      const std::int64_t n = std::min(kFloatSlice, panel.n_inner - k);
      expand_rows(panel.first_row + row, group, panel.first_inner + k, n, round_up(n, step), rows);
      const std::size_t at = size(row * n_padded + k * group);
      if (uses_tiles_) {
        pack_tiles(rows, round_up(n, step), reinterpret_cast<std::uint16_t*>(memory) + at);
      } else {
        pack_floats(rows, n, reinterpret_cast<float*>(memory) + at);
      }
    }
  }
}

void ProductTask::multiply_tiles(const Panel& panel, const std::byte* memory) const {
  const auto* rows = reinterpret_cast<const std::uint16_t*>(memory);
  const auto* columns = reinterpret_cast<const std::uint16_t*>(packed_);
  const std::int64_t n_inner = round_up(product_.n_inner, kTileInner);
  const std::int64_t n_panel_inner = round_up(panel.n_inner, kTileInner);
  for (std::int64_t column = 0; column < product_.n_columns; column += kTileBlockSide) {
    for (std::int64_t k = 0; k < n_panel_inner; k += kTileSlice) {
      const std::int64_t n_slice = std::min(kTileSlice, n_panel_inner - k);
      for (std::int64_t row = 0; row < panel.n_rows; row += kTileBlockSide) {
        amx_multiply_tiles(
            {.rows = rows + size(row * n_panel_inner + k * kTileSide),
             .row_tile_stride = size(n_panel_inner * kTileSide),
             .n_rows = std::min(kTileBlockSide, panel.n_rows - row),
             .columns = columns + size(column * n_inner + (panel.first_inner + k) * kTileSide),
             .column_tile_stride = size(n_inner * kTileSide),
             .n_columns = std::min(kTileBlockSide, product_.n_columns - column),
             .n_tiles = n_slice / kTileInner,
             .result = product_.result + size(column) * product_.result_stride +
                       size(panel.first_row + row),
             .result_stride = product_.result_stride,
             .is_first = panel.first_inner + k == 0});
      }
    }
  }
}

void ProductTask::multiply_groups(const Panel& panel, const std::byte* memory) const {
  const auto [group_rows, block_columns] = float_shape();
  const auto* groups = reinterpret_cast<const float*>(memory);
  const auto* columns = reinterpret_cast<const float*>(packed_);
  const std::int64_t n_inner = round_up(product_.n_inner, kFloatSlice);
  for (std::int64_t column = 0; column < product_.n_columns; column += block_columns) {
    for (std::int64_t k = 0; k < panel.n_inner; k += kFloatSlice) {
      for (std::int64_t row = 0; row < panel.n_rows; row += group_rows) {
        multiply_floats(
            {.group = groups + size(row * panel.n_inner + k * group_rows),
             .block = columns + size(column * n_inner + (panel.first_inner + k) * block_columns),
             .n_inner = std::min(kFloatSlice, panel.n_inner - k),
             .n_rows = std::min(group_rows, panel.n_rows - row),
             .n_columns = std::min(block_columns, product_.n_columns - column),
             .result = product_.result + size(column) * product_.result_stride +
                       size(panel.first_row + row),
             .result_stride = product_.result_stride,
             .is_first = panel.first_inner + k == 0});
      }
    }
  }
}

}  // namespace slipstream::turbo
