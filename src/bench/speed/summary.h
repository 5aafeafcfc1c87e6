// Summarizes the repeats of each cell: medians with their range, compared with the first scheme at
// the same depth and concurrency. If that was measured in several of stock's settings, the fastest
// counts, separately for decode and prompts: nobody has to run stock at a slower setting.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/speed/journal.h"

namespace slipstream::bench {

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};
[[nodiscard]] Spread spread_of(std::vector<double> values);
// The value below which `share` of the values lie, interpolated between neighbours. 0 if
// there are none.
[[nodiscard]] double percentile(std::vector<double> values, double share);

enum class Verdict {
  kBaseline,
  kFaster,
  kSame,    // the ranges overlap, so there is no clear difference
  kSlower,  // a loss, and reported as one
};

struct Ratio {
  double value = 0;  // of medians; 0: nothing to compare with
  Verdict verdict = Verdict::kSame;
};

struct CellSummary {
  Cell cell;
  int n_repeats = 0;  // 0: `error` says why
  Spread prefill;     // tokens/s
  Spread decode;
  Ratio prefill_ratio;  // to the first scheme at its best
  Ratio decode_ratio;
  double prefill_to_default = 0;  // to the first scheme at its default; 0: nothing to compare with
  double decode_to_default = 0;
  double step_ms_p50 = 0;
  double step_ms_p99 = 0;
  double fill_seconds = 0;  // median of the turns that filled the depth; 0 if none did
  double rss_bytes = 0;
  double kv_bytes = 0;
  double cpu_share_min = 0;
  std::string error;
};

// In the order of the matrix.
[[nodiscard]] std::vector<CellSummary> summarise(const Matrix& matrix,
                                                 std::span<const TurnRecord> records);

}  // namespace slipstream::bench
