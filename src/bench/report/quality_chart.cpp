#include "bench/report/quality_chart.h"

namespace slipstream::bench {

Chart quality_chart(std::span<const QualityPoint> points) {
  Chart chart{.title = "Quality against size: lower and further left is better",
              .x_name = "bits per number of the cache",
              .y_name = "KL divergence to f16",
              .x_labels = {},
              .series = {}};
  for (const QualityPoint& point : points) {
    if (point.kl_divergence <= 0) continue;
    chart.series.push_back({.name = point.kv,
                            .colour = point.colour,
                            .points = {{.x = point.bits, .y = point.kl_divergence}}});
  }
  return chart;
}

}  // namespace slipstream::bench
