#include "bench/speed/summary.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace slipstream::bench {
namespace {

Ratio compare(const Spread& ours, const Spread& baseline, bool is_baseline) {
  if (is_baseline) return {.value = 1, .verdict = Verdict::kBaseline};
  if (baseline.median <= 0) return {};
  const bool overlaps = ours.max >= baseline.min && ours.min <= baseline.max;
  const double value = ours.median / baseline.median;
  return {.value = value,
          .verdict = overlaps ? Verdict::kSame : (value > 1 ? Verdict::kFaster : Verdict::kSlower)};
}

CellSummary summarise_cell(const Cell& cell, std::span<const TurnRecord> records) {
  CellSummary summary;
  summary.cell = cell;
  std::vector<double> prefill;
  std::vector<double> decode;
  std::vector<double> steps;
  std::vector<double> fills;
  std::vector<double> resident;
  summary.cpu_share_min = 1;
  for (const TurnRecord& record : records) {
    if (record.turn.cell.kv == cell.kv && record.turn.cell.depth == cell.depth && record.figures &&
        record.figures->fill_seconds > 0) {
      fills.push_back(record.figures->fill_seconds);  // from the concurrency that came first
    }
    if (record.turn.cell != cell) continue;
    if (!record.figures) {
      summary.error = record.error;
      continue;
    }
    const CellFigures& figures = *record.figures;
    prefill.push_back(figures.prefill_tokens_per_s);
    decode.push_back(figures.decode_tokens_per_s);
    steps.insert(steps.end(), figures.step_ms.begin(), figures.step_ms.end());
    resident.push_back(static_cast<double>(figures.rss_bytes));
    summary.kv_bytes = static_cast<double>(figures.kv_bytes);
    summary.cpu_share_min = std::min(summary.cpu_share_min, figures.cpu_share);
  }
  summary.n_repeats = static_cast<int>(decode.size());
  if (summary.n_repeats > 0) summary.error.clear();
  summary.prefill = spread_of(prefill);
  summary.decode = spread_of(decode);
  summary.step_ms_p50 = percentile(steps, 0.5);
  summary.step_ms_p99 = percentile(steps, 0.99);
  summary.fill_seconds = percentile(fills, 0.5);
  summary.rss_bytes = percentile(resident, 0.5);
  return summary;
}

using Figure = Spread CellSummary::*;

const CellSummary& best_of(const std::vector<const CellSummary*>& baselines, Figure figure) {
  return **std::ranges::max_element(
      baselines, {}, [figure](const CellSummary* cell) { return (cell->*figure).median; });
}

// The cells of one depth and concurrency, starting with the first scheme.
void compare_all(std::span<CellSummary> cells) {
  const CellSummary& standard = cells.front();
  std::vector<const CellSummary*> baselines;
  for (const CellSummary& cell : cells) {
    if (is_setting_of(cell.cell.kv, standard.cell.kv)) baselines.push_back(&cell);
  }
  const CellSummary& best_prefill = best_of(baselines, &CellSummary::prefill);
  const CellSummary& best_decode = best_of(baselines, &CellSummary::decode);
  const auto to_default = [&](const CellSummary& cell, Figure figure) {
    const double median = (standard.*figure).median;
    return &cell == &standard || median <= 0 ? 0 : (cell.*figure).median / median;
  };
  for (CellSummary& cell : cells) {
    cell.prefill_ratio = compare(cell.prefill, best_prefill.prefill, &cell == &best_prefill);
    cell.decode_ratio = compare(cell.decode, best_decode.decode, &cell == &best_decode);
    cell.prefill_to_default = to_default(cell, &CellSummary::prefill);
    cell.decode_to_default = to_default(cell, &CellSummary::decode);
  }
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - std::floor(place));
}

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  const auto [min, max] = std::ranges::minmax(values);
  return {.median = percentile(std::move(values), 0.5), .min = min, .max = max};
}

std::vector<CellSummary> summarise(const Matrix& matrix, std::span<const TurnRecord> records) {
  std::vector<CellSummary> cells;
  for (const int depth : matrix.depths) {
    for (const std::vector<Cell>& row : cells_at(matrix, depth)) {
      const std::size_t first = cells.size();
      for (const Cell& cell : row) cells.push_back(summarise_cell(cell, records));
      compare_all(std::span(cells).subspan(first));
    }
  }
  return cells;
}

}  // namespace slipstream::bench
