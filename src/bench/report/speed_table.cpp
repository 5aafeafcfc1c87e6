#include "bench/report/speed_table.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/format.h"
#include "base/format_bytes.h"

namespace slipstream::bench {
namespace {

constexpr std::array kColumns = {"KV",           "depth",         "sequences", "decode tok/s",
                                 "to f16",       "prefill tok/s", "to f16",    "step ms p50 / p99",
                                 "depth filled", "KV cache"};
using Row = std::array<std::string, kColumns.size()>;

Row row_of(const CellSummary& cell) {
  Row row = {cell.cell.kv, depth_text(cell.cell.depth), format_text("{}", cell.cell.n_sequences)};
  if (cell.n_repeats == 0) {
    row[3] = "failed";
    return row;
  }
  row[3] = format_text("{:.2f}", cell.decode.median);
  row[4] = ratio_text(cell.decode_ratio);
  row[5] = format_text("{:.1f}", cell.prefill.median);
  row[6] = ratio_text(cell.prefill_ratio);
  row[7] = format_text("{:.0f} / {:.0f}", cell.step_ms_p50, cell.step_ms_p99);
  if (cell.fill_seconds > 0) row[8] = format_text("{:.1f} s", cell.fill_seconds);
  if (cell.kv_bytes > 0) row[9] = format_bytes(static_cast<std::uint64_t>(cell.kv_bytes));
  return row;
}

std::vector<Row> rows_of(std::span<const CellSummary> cells) {
  Row head;
  std::ranges::copy(kColumns, head.begin());
  std::vector<Row> rows = {head};
  for (const CellSummary& cell : cells) rows.push_back(row_of(cell));
  return rows;
}

// All columns but the first are numbers: flush right.
std::string draw(std::span<const Row> rows, std::string_view between, bool has_rule,
                 std::string_view edge) {
  std::array<std::size_t, kColumns.size()> width = {};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += edge;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += between;
      const std::string padding(width[i] - row[i].size(), ' ');
      text += i == 0 ? row[i] + padding : padding + row[i];
    }
    text += edge.empty() ? "\n" : " |\n";
    if (has_rule && &row == &rows.front()) {
      text += "|---|";
      for (std::size_t i = 1; i < row.size(); ++i) text += "---:|";
      text += "\n";
    }
  }
  return text;
}

}  // namespace

std::string ratio_text(const Ratio& ratio) {
  if (ratio.verdict == Verdict::kBaseline || ratio.value <= 0) return "";
  const std::string_view mark = ratio.verdict == Verdict::kSlower ? " LOSS"
                                : ratio.verdict == Verdict::kSame ? " ~"
                                                                  : "";
  return format_text("{:.2f}x{}", ratio.value, mark);
}

std::string depth_text(int depth) {
  if (depth < 1024) return format_text("{}", depth);
  return depth % 1024 == 0 ? format_text("{}k", depth / 1024)
                           : format_text("{:.1f}k", depth / 1024.0);
}

std::string terminal_table(std::span<const CellSummary> cells) {
  std::string text = draw(rows_of(cells), "  ", false, "");
  for (const CellSummary& cell : cells) {
    if (cell.n_repeats == 0) {
      text += format_text("{} at {}, {} together: {}\n", cell.cell.kv, depth_text(cell.cell.depth),
                          cell.cell.n_sequences, cell.error);
    }
  }
  return text;
}

std::string markdown_table(std::span<const CellSummary> cells) {
  return draw(rows_of(cells), " | ", true, "| ");
}

std::string csv_table(std::span<const CellSummary> cells) {
  std::string text =
      "kv,depth,sequences,repeats,decode_tokens_per_s,decode_min,decode_max,decode_ratio,"
      "prefill_tokens_per_s,prefill_min,prefill_max,prefill_ratio,step_ms_p50,step_ms_p99,"
      "fill_seconds,kv_bytes,rss_bytes,cpu_share_min,error\n";
  for (const CellSummary& cell : cells) {
    std::string error = cell.error;
    std::ranges::replace(error, '"', '\'');
    std::ranges::replace(error, '\n', ' ');
    text += format_text(
        "\"{}\",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},\"{}\"\n", cell.cell.kv,
        cell.cell.depth, cell.cell.n_sequences, cell.n_repeats, cell.decode.median, cell.decode.min,
        cell.decode.max, cell.decode_ratio.value, cell.prefill.median, cell.prefill.min,
        cell.prefill.max, cell.prefill_ratio.value, cell.step_ms_p50, cell.step_ms_p99,
        cell.fill_seconds, cell.kv_bytes, cell.rss_bytes, cell.cpu_share_min, error);
  }
  return text;
}

}  // namespace slipstream::bench
