// One benchmark as documents for people: Markdown with pictures, and a single HTML file.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "bench/report/chart.h"
#include "bench/report/quality_chart.h"
#include "bench/speed/journal.h"
#include "bench/speed/summary.h"

namespace slipstream::bench {

struct SpeedReport {
  RunHeader header;
  Matrix matrix;
  std::vector<CellSummary> cells;
  double seconds = 0;  // for all turns together
  std::vector<QualityPoint> quality;
};

// The pictures as separate files.
[[nodiscard]] std::vector<Picture> pictures(const SpeedReport& report);

// The Markdown shows the pictures from files beside it.
[[nodiscard]] std::string markdown_report(const SpeedReport& report);
[[nodiscard]] std::string html_report(const SpeedReport& report);

}  // namespace slipstream::bench
