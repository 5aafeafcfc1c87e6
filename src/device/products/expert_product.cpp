#include "device/products/expert_product.h"

#include <algorithm>
#include <cstring>

#include "device/attention/scratch.h"

namespace slipstream::turbo {
namespace {

// Rows of a panel. There are many panels, because there are many experts.
constexpr std::int64_t kExpertPanelRows = 128;

// Memory of a thread, kept from product to product.
struct ExpertScratch {
  Scratch<float> columns;    // of a block
  Scratch<std::byte> panel;  // packed
  Scratch<float> result;     // of a panel, [column][row]
};

ExpertScratch& expert_scratch() {
  thread_local ExpertScratch scratch;
  return scratch;
}

}  // namespace

ExpertColumns::ExpertColumns(const ExpertChoices& choices, ggml_type type, std::byte* packed)
    : choices_(choices), type_(type), packed_(packed), form_(panel_form(type)) {}

// Every expert may have a last block that is not full.
std::size_t ExpertColumns::n_bytes(ggml_type type, std::int64_t n_inner, std::int64_t n_uses,
                                   std::int64_t n_experts) {
  const PanelForm& form = panel_form(type);
  const std::int64_t n_blocks = n_uses / form.block_columns() + std::min(n_uses, n_experts);
  return size(n_blocks) * form.block_bytes(type, n_inner);
}

void ExpertColumns::gather() {
  groups_.gather(choices_);
  first_blocks_.clear();
  std::size_t first = 0;
  for (const ExpertGroups::Group& group : groups_.groups()) {
    first_blocks_.push_back(first);
    const auto n = static_cast<std::int64_t>(group.n);
    first += size(round_up(n, form_.block_columns()) / form_.block_columns());
  }
}

const std::byte* ExpertColumns::packed(std::size_t group) const {
  return packed_ + first_blocks_[group] * form_.block_bytes(type_, choices_.n_inner);
}

void ExpertColumns::pack(int thread_idx, int n_threads) const {
  const std::int64_t n_block = form_.block_columns();
  for (std::size_t i = 0; i < groups_.groups().size(); ++i) {
    const ExpertGroups::Group& group = groups_.groups()[i];
    for (std::int64_t first = 0; first < static_cast<std::int64_t>(group.n); first += n_block) {
      const std::size_t block = first_blocks_[i] + size(first / n_block);
      if (block % size(n_threads) != size(thread_idx)) continue;
      pack_block(group, first, packed_ + block * form_.block_bytes(type_, choices_.n_inner));
    }
  }
}

void ExpertColumns::pack_block(const ExpertGroups::Group& group, std::int64_t first,
                               std::byte* block) const {
  const std::int64_t n =
      std::min(form_.block_columns(), static_cast<std::int64_t>(group.n) - first);
  Scratch<float>& columns = expert_scratch().columns;
  columns.resize(size(n), size(choices_.n_inner));
  for (std::int64_t c = 0; c < n; ++c) {
    const ExpertGroups::Use& use = groups_.uses()[group.first + size(first + c)];
    std::memcpy(columns.row(size(c)), choices_.column(use.token, use.rank),
                size(choices_.n_inner) * sizeof(float));
  }
  form_.pack_block({.type = type_,
                    .weights = nullptr,
                    .row_bytes = 0,
                    .n_rows = 0,
                    .n_inner = choices_.n_inner,
                    .columns = columns.data(),
                    .column_stride = columns.stride(),
                    .n_columns = n,
                    .result = nullptr,
                    .result_stride = 0},
                   0, n, block);
}

void ExpertProductTask::multiply() {
  const std::int64_t n_panels = (product_.n_rows + kExpertPanelRows - 1) / kExpertPanelRows;
  for (;;) {
    const std::int64_t panel = next_panel_.fetch_add(1, std::memory_order_relaxed);
    const std::size_t group = size(panel / n_panels);
    if (group >= columns_.groups().groups().size()) return;
    const std::int64_t first_row = panel % n_panels * kExpertPanelRows;
    multiply_panel(group, first_row, std::min(kExpertPanelRows, product_.n_rows - first_row));
  }
}

void ExpertProductTask::multiply_panel(std::size_t group_idx, std::int64_t first_row,
                                       std::int64_t n_rows) const {
  const ExpertGroups::Group& group = columns_.groups().groups()[group_idx];
  const PanelForm& form = columns_.form();
  ExpertScratch& scratch = expert_scratch();
  scratch.result.resize(group.n, size(n_rows));
  // The panel's rows alone, with a result that is not spread over tokens.
  const Product rows{.type = product_.type,
                     .weights = product_.rows(group.expert, first_row),
                     .row_bytes = product_.row_bytes,
                     .n_rows = n_rows,
                     .n_inner = product_.n_inner,
                     .columns = nullptr,
                     .column_stride = 0,
                     .n_columns = static_cast<std::int64_t>(group.n),
                     .result = scratch.result.data(),
                     .result_stride = size(n_rows)};
  const std::int64_t n_panel_inner = panel_inner(n_rows, product_.n_inner);
  for (std::int64_t k = 0; k < product_.n_inner; k += n_panel_inner) {
    const Panel panel{.first_row = 0,
                      .n_rows = n_rows,
                      .first_inner = k,
                      .n_inner = std::min(n_panel_inner, product_.n_inner - k)};
    scratch.panel.resize(form.panel_bytes(rows, panel));
    form.pack_panel(rows, panel, scratch.panel.data());
    form.multiply_panel(rows, panel, scratch.panel.data(), columns_.packed(group_idx));
  }
  for (std::size_t c = 0; c < group.n; ++c) {
    std::memcpy(product_.result_of(columns_.groups().uses()[group.first + c]) + first_row,
                scratch.result.row(c), size(n_rows) * sizeof(float));
  }
}

}  // namespace slipstream::turbo
