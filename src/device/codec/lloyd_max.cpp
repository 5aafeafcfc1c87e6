#include "device/codec/lloyd_max.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace slipstream::turbo {
namespace {

constexpr double kEndOfLine = std::numeric_limits<double>::infinity();

double density(double x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

// Probability of being above x; erfc keeps its precision in the tail.
double above(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }

struct Cell {
  double probability;
  double mean;
};

Cell cell(double low, double high) {
  const double probability = above(low) - above(high);
  return {.probability = probability, .mean = (density(low) - density(high)) / probability};
}

}  // namespace

LloydMax lloyd_max(int n_levels) {
  SLIP_CHECK(n_levels >= 2, "a codebook of fewer than two levels");
  const auto n = static_cast<std::size_t>(n_levels);
  std::vector<double> centroids(n);
  for (std::size_t k = 0; k < n; ++k) {
    centroids[k] = 6.0 * (static_cast<double>(k) + 0.5) / n_levels - 3.0;
  }
  // Each centroid moves to the mean of its cell until none moves. 16 levels take about 500 rounds;
  // the limit only prevents an endless loop.
  double mse = 1;
  for (int round = 0; round < 100000; ++round) {
    std::vector<double> moved(n);
    mse = 1;
    for (std::size_t k = 0; k < n; ++k) {
      const double low = k == 0 ? -kEndOfLine : (centroids[k - 1] + centroids[k]) / 2;
      const double high = k == n - 1 ? kEndOfLine : (centroids[k] + centroids[k + 1]) / 2;
      const Cell here = cell(low, high);
      moved[k] = here.mean;
      mse -= here.probability * here.mean * here.mean;
    }
    double step_max = 0;
    for (std::size_t k = 0; k < n; ++k) {
      // Averaged with its mirror image, so that rounding cannot break the symmetry.
      const double symmetric = (moved[k] - moved[n - 1 - k]) / 2;
      step_max = std::max(step_max, std::abs(symmetric - centroids[k]));
      centroids[k] = symmetric;
    }
    if (step_max < 1e-15) break;
  }
  return {.centroids = centroids, .mse = mse};
}

}  // namespace slipstream::turbo
