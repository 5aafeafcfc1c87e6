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

std::int32_t ExpertColumns::expert_of(std::int64_t token, std::int64_t rank) const {
  std::int32_t expert = 0;
  std::memcpy(&expert,
              choices_.experts + size(token) * choices_.token_bytes + size(rank) * sizeof(expert),
              sizeof(expert));
  return expert;
}

void ExpertColumns::gather() {
  groups_.clear();
  std::vector<std::int64_t> n_uses(size(choices_.n_experts));
  for (std::int64_t token = 0; token < choices_.n_tokens; ++token) {
    for (std::int64_t rank = 0; rank < choices_.n_ranks; ++rank) {
      ++n_uses.at(static_cast<std::size_t>(expert_of(token, rank)));
    }
  }
  std::size_t first = 0;
  std::size_t first_block = 0;
  std::vector<std::size_t> next(n_uses.size());  // place of an expert's next use
  for (std::size_t expert = 0; expert < n_uses.size(); ++expert) {
    next[expert] = first;
    if (n_uses[expert] == 0) continue;
    groups_.push_back({.expert = static_cast<std::int64_t>(expert),
                       .first = first,
                       .n = n_uses[expert],
                       .first_block = first_block});
    first += size(n_uses[expert]);
    first_block += size(round_up(n_uses[expert], form_.block_columns()) / form_.block_columns());
  }
  uses_.resize(first);
  for (std::int64_t token = 0; token < choices_.n_tokens; ++token) {
    for (std::int64_t rank = 0; rank < choices_.n_ranks; ++rank) {
      uses_[next[static_cast<std::size_t>(expert_of(token, rank))]++] = {.token = token,
                                                                         .rank = rank};
    }
  }
}

const std::byte* ExpertColumns::packed(const Group& group) const {
  return packed_ + group.first_block * form_.block_bytes(type_, choices_.n_inner);
}

void ExpertColumns::pack(int thread_idx, int n_threads) const {
  const std::int64_t n_block = form_.block_columns();
  for (const Group& group : groups_) {
    for (std::int64_t i = 0; i * n_block < group.n; ++i) {
      const std::size_t block = group.first_block + size(i);
      if (block % size(n_threads) != size(thread_idx)) continue;
      pack_block(group, i * n_block, packed_ + block * form_.block_bytes(type_, choices_.n_inner));
    }
  }
}

void ExpertColumns::pack_block(const Group& group, std::int64_t first, std::byte* block) const {
  const std::int64_t n = std::min(form_.block_columns(), group.n - first);
  Scratch<float>& columns = expert_scratch().columns;
  columns.resize(size(n), size(choices_.n_inner));
  for (std::int64_t c = 0; c < n; ++c) {
    const Use& use = uses_[group.first + size(first + c)];
    std::memcpy(columns.row(size(c)),
                choices_.columns + size(use.token) * choices_.column_token_stride +
                    size(use.rank) * choices_.column_rank_stride,
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
  const std::vector<ExpertColumns::Group>& groups = columns_.groups();
  const std::int64_t n_panels = (product_.n_rows + kExpertPanelRows - 1) / kExpertPanelRows;
  for (;;) {
    const std::int64_t panel = next_panel_.fetch_add(1, std::memory_order_relaxed);
    const std::size_t group = size(panel / n_panels);
    if (group >= groups.size()) return;
    const std::int64_t first_row = panel % n_panels * kExpertPanelRows;
    multiply_panel(groups[group], first_row,
                   std::min(kExpertPanelRows, product_.n_rows - first_row));
  }
}

void ExpertProductTask::multiply_panel(const ExpertColumns::Group& group, std::int64_t first_row,
                                       std::int64_t n_rows) const {
  const PanelForm& form = columns_.form();
  ExpertScratch& scratch = expert_scratch();
  scratch.result.resize(size(group.n), size(n_rows));
  // The panel's rows alone, with a result that is not spread over tokens.
  const Product rows{.type = product_.type,
                     .weights = product_.weights + size(group.expert) * product_.expert_bytes +
                                size(first_row) * product_.row_bytes,
                     .row_bytes = product_.row_bytes,
                     .n_rows = n_rows,
                     .n_inner = product_.n_inner,
                     .columns = nullptr,
                     .column_stride = 0,
                     .n_columns = group.n,
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
    form.multiply_panel(rows, panel, scratch.panel.data(), columns_.packed(group));
  }
  for (std::int64_t c = 0; c < group.n; ++c) {
    const ExpertColumns::Use& use = columns_.use(group.first + size(c));
    std::memcpy(product_.result + size(use.token) * product_.result_token_stride +
                    size(use.rank) * product_.result_rank_stride + first_row,
                scratch.result.row(size(c)), size(n_rows) * sizeof(float));
  }
}

}  // namespace slipstream::turbo
