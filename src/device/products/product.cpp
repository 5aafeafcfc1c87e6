#include "device/products/product.h"

#include <algorithm>

#include "device/attention/kernel_choice.h"
#include "device/attention/scratch.h"
#include "device/products/expand_row.h"
#include "device/products/panel_form.h"
#include "device/products/panel_kernels.h"
#include "device/tile_registers.h"

namespace slipstream::turbo {
namespace {

// Numbers of a panel: a quarter of a second cache of 2 MB, in bf16. Of the rest, most is for
// columns and results that pass by.
constexpr std::int64_t kPanelNumbers = std::int64_t{1} << 18;
constexpr std::int64_t kPanelRowsMax = 256;
// Rows and k of panels are multiples of these, which suits every form.
constexpr std::int64_t kPanelRowsStep = 32;
constexpr std::int64_t kPanelInnerStep = 512;
// Panels for each thread, so that one that is late costs little.
constexpr std::int64_t kPanelsPerThread = 4;

}  // namespace

const PanelForm& panel_form(ggml_type type) {
  switch (product_form(type)) {
    case ProductForm::kTiles: return tile_form();
    case ProductForm::kBytes: return byte_form();
    case ProductForm::kFloats: break;
  }
  return float_form();
}

std::int64_t panel_inner(std::int64_t n_rows, std::int64_t n_inner) {
  return std::min(n_inner, kPanelNumbers / n_rows / kPanelInnerStep * kPanelInnerStep);
}

bool can_multiply(ggml_type type) {
  return row_expander(type) != nullptr && kFloatSlice % ggml_blck_size(type) == 0;
}

ProductForm product_form(ggml_type type) {
  if (use_amx() && has_amx_bf16()) return ProductForm::kTiles;
  return has_byte_form(type) ? ProductForm::kBytes : ProductForm::kFloats;
}

bool pack_alike(ggml_type a, ggml_type b) {
  // Bytes have sums of 16 or of 32 numbers.
  return product_form(a) == product_form(b) && panel_form(a).block_bytes(a, kPanelInnerStep) ==
                                                   panel_form(b).block_bytes(b, kPanelInnerStep);
}

std::size_t n_packed_bytes(std::int64_t n_inner, std::int64_t n_columns) {
  // f32 stands for every type that is not multiplied as tiles: bytes are fewer.
  const PanelForm& form = panel_form(GGML_TYPE_F32);
  return size(round_up(n_columns, form.block_columns()) / form.block_columns()) *
         form.block_bytes(GGML_TYPE_F32, n_inner);
}

ProductTask::ProductTask(const Product& product, std::byte* packed)
    : product_(product), packed_(packed), form_(&panel_form(product.type)) {}

void ProductTask::pack_columns(int thread_idx, int n_threads) {
  const std::int64_t n_block = form_->block_columns();
  const std::int64_t n_blocks = round_up(product_.n_columns, n_block) / n_block;
  for (std::int64_t i = thread_idx; i < n_blocks; i += n_threads) {
    form_->pack_block(product_, i * n_block, std::min(n_block, product_.n_columns - i * n_block),
                      packed_ + size(i) * form_->block_bytes(product_.type, product_.n_inner));
  }
}

void ProductTask::multiply(int n_threads) {
  const std::int64_t n_panel_rows =
      std::clamp(round_up(product_.n_rows / (kPanelsPerThread * n_threads), kPanelRowsStep),
                 kPanelRowsStep, kPanelRowsMax);
  const std::int64_t n_panel_inner = panel_inner(n_panel_rows, product_.n_inner);
  // Kept from product to product.
  thread_local Scratch<std::byte> packed;
  packed.resize(form_->panel_bytes(
      product_,
      {.first_row = 0, .n_rows = n_panel_rows, .first_inner = 0, .n_inner = n_panel_inner}));
  for (;;) {
    const std::int64_t first = next_row_.fetch_add(n_panel_rows, std::memory_order_relaxed);
    if (first >= product_.n_rows) return;
    for (std::int64_t k = 0; k < product_.n_inner; k += n_panel_inner) {
      const Panel panel{.first_row = first,
                        .n_rows = std::min(n_panel_rows, product_.n_rows - first),
                        .first_inner = k,
                        .n_inner = std::min(n_panel_inner, product_.n_inner - k)};
      form_->pack_panel(product_, panel, packed.data());
      form_->multiply_panel(product_, panel, packed.data(), packed_);
    }
  }
}

}  // namespace slipstream::turbo
