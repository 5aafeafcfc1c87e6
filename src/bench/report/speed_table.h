// The speed matrix as a table: for a terminal, for Markdown, for a spreadsheet.
//
// Ratios are relative to the first scheme at the same depth and concurrency: to the better of with
// and without flash attention, and also to its default. LOSS marks a scheme that is slower, ~ marks
// ranges that overlap, so that nobody mistakes noise for a gain.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <span>
#include <string>

#include "bench/speed/summary.h"

namespace slipstream::bench {

[[nodiscard]] std::string terminal_table(std::span<const CellSummary> cells);
[[nodiscard]] std::string markdown_table(std::span<const CellSummary> cells);
[[nodiscard]] std::string csv_table(std::span<const CellSummary> cells);

// "2.31x", "2.31x ~", "0.80x LOSS"; empty for the baseline.
[[nodiscard]] std::string ratio_text(const Ratio& ratio);
// The ratio to the default; empty for the default itself.
[[nodiscard]] std::string default_text(double ratio);
// 0, 512, 1k, 8k, 1.5k
[[nodiscard]] std::string depth_text(int depth);
// "8", or "8 sharing" the depth.
[[nodiscard]] std::string sequences_text(const Cell& cell);

}  // namespace slipstream::bench
