#include "bench/report/speed_table.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/format_bytes.h"
#include "bench/report/text_table.h"

namespace slipstream::bench {
namespace {

TextTable table_of(std::span<const CellSummary> cells) {
  TextTable table({"KV", "depth", "sequences", "decode tok/s", "to stock's best", "to its default",
                   "prefill tok/s", "to stock's best", "to its default", "step ms p50 / p99",
                   "depth filled", "KV cache"});
  for (const CellSummary& cell : cells) {
    TextTable::Row row = {cell.cell.kv, depth_text(cell.cell.depth), sequences_text(cell.cell)};
    if (cell.n_repeats == 0) {
      row.emplace_back("failed");
    } else {
      row.push_back(format_text("{:.2f}", cell.decode.median));
      row.push_back(ratio_text(cell.decode_ratio));
      row.push_back(default_text(cell.decode_to_default));
      row.push_back(format_text("{:.1f}", cell.prefill.median));
      row.push_back(ratio_text(cell.prefill_ratio));
      row.push_back(default_text(cell.prefill_to_default));
      row.push_back(format_text("{:.0f} / {:.0f}", cell.step_ms_p50, cell.step_ms_p99));
      row.push_back(cell.fill_seconds > 0 ? format_text("{:.1f} s", cell.fill_seconds) : "");
      row.push_back(cell.kv_bytes > 0 ? format_bytes(static_cast<std::uint64_t>(cell.kv_bytes))
                                      : "");
    }
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

std::string ratio_text(const Ratio& ratio) {
  if (ratio.verdict == Verdict::kBaseline || ratio.value <= 0) return "";
  const std::string_view mark = ratio.verdict == Verdict::kSlower ? " LOSS"
                                : ratio.verdict == Verdict::kSame ? " ~"
                                                                  : "";
  return format_text("{:.2f}x{}", ratio.value, mark);
}

std::string default_text(double ratio) { return ratio > 0 ? format_text("{:.2f}x", ratio) : ""; }

std::string depth_text(int depth) {
  if (depth < 1024) return format_text("{}", depth);
  return depth % 1024 == 0 ? format_text("{}k", depth / 1024)
                           : format_text("{:.1f}k", depth / 1024.0);
}

std::string sequences_text(const Cell& cell) {
  return format_text("{}{}", cell.n_sequences, cell.shares_depth ? " sharing" : "");
}

std::string terminal_table(std::span<const CellSummary> cells) {
  std::string text = table_of(cells).plain();
  for (const CellSummary& cell : cells) {
    if (cell.n_repeats == 0) {
      text += format_text("{} at {}, {} together: {}\n", cell.cell.kv, depth_text(cell.cell.depth),
                          sequences_text(cell.cell), cell.error);
    }
  }
  return text;
}

std::string markdown_table(std::span<const CellSummary> cells) {
  return table_of(cells).markdown();
}

std::string csv_table(std::span<const CellSummary> cells) {
  std::string text =
      "kv,depth,sequences,repeats,decode_tokens_per_s,decode_min,decode_max,decode_ratio,"
      "prefill_tokens_per_s,prefill_min,prefill_max,prefill_ratio,step_ms_p50,step_ms_p99,"
      "fill_seconds,kv_bytes,rss_bytes,cpu_share_min,decode_to_default,prefill_to_default,sharing,"
      "error\n";
  for (const CellSummary& cell : cells) {
    std::string error = cell.error;
    std::ranges::replace(error, '"', '\'');
    std::ranges::replace(error, '\n', ' ');
    text += format_text(
        "\"{}\",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},\"{}\"\n", cell.cell.kv,
        cell.cell.depth, cell.cell.n_sequences, cell.n_repeats, cell.decode.median, cell.decode.min,
        cell.decode.max, cell.decode_ratio.value, cell.prefill.median, cell.prefill.min,
        cell.prefill.max, cell.prefill_ratio.value, cell.step_ms_p50, cell.step_ms_p99,
        cell.fill_seconds, cell.kv_bytes, cell.rss_bytes, cell.cpu_share_min,
        cell.decode_to_default, cell.prefill_to_default, cell.cell.shares_depth ? 1 : 0, error);
  }
  return text;
}

}  // namespace slipstream::bench
