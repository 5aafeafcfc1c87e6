#include "device/products/expert_dots.h"

#include <algorithm>

namespace slipstream::turbo {
namespace {

// Rows that a thread takes at a time: they stay in the second cache while columns pass by.
constexpr std::int64_t kExpertDotRows = 64;

constexpr std::int64_t n_expert_pieces(std::int64_t n_inner) {
  return (n_inner + kDotInner - 1) / kDotInner;
}

}  // namespace

// Where experts share a token's column, it is packed once.
ExpertDotColumns::ExpertDotColumns(const ExpertChoices& choices, std::byte* packed)
    : choices_(choices),
      packed_(reinterpret_cast<DotColumn*>(packed)),
      n_ranks_(choices.column_rank_stride == 0 ? 1 : choices.n_ranks) {}

std::size_t ExpertDotColumns::n_bytes(std::int64_t n_inner, std::int64_t n_uses) {
  return static_cast<std::size_t>(n_expert_pieces(n_inner) * n_uses) * sizeof(DotColumn);
}

void ExpertDotColumns::pack(int thread_idx, int n_threads) {
  if (thread_idx == 0) groups_.gather(choices_);
  const std::int64_t n_pieces = n_expert_pieces(choices_.n_inner);
  const std::int64_t n_units = choices_.n_tokens * n_ranks_ * n_pieces;
  for (std::int64_t unit = thread_idx; unit < n_units; unit += n_threads) {
    const std::int64_t column = unit / n_pieces;
    const std::int64_t k = unit % n_pieces * kDotInner;
    pack_dot_column(choices_.column(column / n_ranks_, column % n_ranks_) + k,
                    std::min(kDotInner, choices_.n_inner - k), packed_ + unit);
  }
}

const DotColumn* ExpertDotColumns::column(const ExpertGroups::Use& use) const {
  const std::int64_t idx = use.token * n_ranks_ + (n_ranks_ == 1 ? 0 : use.rank);
  return packed_ + idx * n_expert_pieces(choices_.n_inner);
}

void ExpertDotTask::multiply() {
  const DotKernel kernel = dot_kernel(product_.type);
  const auto& groups = columns_.groups().groups();
  const std::int64_t n_pieces = (product_.n_rows + kExpertDotRows - 1) / kExpertDotRows;
  for (;;) {
    const std::int64_t piece = next_piece_.fetch_add(1, std::memory_order_relaxed);
    const auto idx = static_cast<std::size_t>(piece / n_pieces);
    if (idx >= groups.size()) return;
    const ExpertGroups::Group& group = groups[idx];
    const std::int64_t first_row = piece % n_pieces * kExpertDotRows;
    for (std::size_t i = group.first; i < group.first + group.n; ++i) {
      const ExpertGroups::Use& use = columns_.groups().uses()[i];
      kernel({.rows = product_.rows(group.expert, first_row),
              .row_bytes = product_.row_bytes,
              .n_rows = std::min(kExpertDotRows, product_.n_rows - first_row),
              .n_inner = product_.n_inner,
              .columns = columns_.column(use),
              .n_group = 1,
              .n_columns = 1,
              .result = product_.result_of(use) + first_row,
              .result_stride = 0,
              .is_first = true});
    }
  }
}

}  // namespace slipstream::turbo
