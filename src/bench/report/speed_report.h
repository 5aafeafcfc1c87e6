// One benchmark as documents for people: Markdown with pictures, and one HTML file that needs no
// other.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "bench/speed/journal.h"
#include "bench/speed/summary.h"

namespace slipstream::bench {

// What `slipstream eval` found of a scheme, if it was asked.
struct QualityPoint {
  std::string kv;
  double bits = 0;  // per number of the cache
  double kl_divergence = 0;
  double same_top1 = 0;  // from 0 to 1
};

struct SpeedReport {
  RunHeader header;
  Matrix matrix;
  std::vector<CellSummary> cells;
  std::vector<QualityPoint> quality;
};

// A picture of the report, as an SVG file that needs no other.
struct Picture {
  std::string file;  // "decode-1.svg"
  std::string title;
  std::string svg;
};
[[nodiscard]] std::vector<Picture> pictures(const SpeedReport& report);

// Shows the pictures from files beside it.
[[nodiscard]] std::string markdown_report(const SpeedReport& report);
[[nodiscard]] std::string html_report(const SpeedReport& report);

}  // namespace slipstream::bench
