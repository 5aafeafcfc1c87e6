// The findings of a benchmark in sentences: the largest gains, and every loss.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "bench/report/speed_report.h"

namespace slipstream::bench {

// "turbo4 decodes 5.6 times as fast as f16 at depth 8k (1 sequence)."
[[nodiscard]] std::vector<std::string> gains(const SpeedReport& report);
// "q4_0 is slower than f16 in 12 of 12 cells, down to 0.4x (decode, depth 8k, 8 sequences)."
[[nodiscard]] std::vector<std::string> losses(const SpeedReport& report);
// What a reader must know before believing the figures.
[[nodiscard]] std::vector<std::string> caveats(const SpeedReport& report);

}  // namespace slipstream::bench
