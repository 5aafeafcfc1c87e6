// A chart of what KV schemes cost in quality, against their size.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <span>
#include <string>

#include "bench/report/chart.h"

namespace slipstream::bench {

// What `slipstream eval` found for a scheme.
struct QualityPoint {
  std::string kv;
  double bits = 0;  // per number in the cache
  double kl_divergence = 0;
  double same_top1 = 0;  // from 0 to 1
  int colour = 0;        // as in Series
};

// For scatter_chart(). A scheme without divergence has no place on its logarithmic scale.
[[nodiscard]] Chart quality_chart(std::span<const QualityPoint> points);

}  // namespace slipstream::bench
