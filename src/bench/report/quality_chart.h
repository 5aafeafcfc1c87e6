// What KV schemes cost in quality, against their size, as a chart.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <span>
#include <string>

#include "bench/report/chart.h"

namespace slipstream::bench {

// What `slipstream eval` found of a scheme.
struct QualityPoint {
  std::string kv;
  double bits = 0;  // per number of the cache
  double kl_divergence = 0;
  double same_top1 = 0;  // from 0 to 1
  int colour = 0;        // as of Series
};

// For scatter_chart(); a scheme without divergence has no place on its scale.
[[nodiscard]] Chart quality_chart(std::span<const QualityPoint> points);

}  // namespace slipstream::bench
