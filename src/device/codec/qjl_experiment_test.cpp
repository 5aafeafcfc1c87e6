// The experiment of docs/decisions/004-no-qjl.md. It compares, at equal bits, a codebook of b bits
// with a codebook of b - 1 bits and a 1-bit QJL sketch of the residual (TurboQuant's "prod"
// variant, arXiv 2504.19874).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <numbers>
#include <vector>

#include "device/codec/codebook.h"
#include "device/codec/test_vectors.h"

namespace slipstream::turbo {
namespace {

constexpr std::size_t kDim = 128;
using Vector = std::vector<float>;
using Matrix = std::vector<Vector>;  // rows

// The rows are independent Gaussians, as in the paper. Or they are orthogonal and of equal length,
// which is better.
Matrix projection(bool orthogonal) {
  TestVectors vectors(9);
  Matrix rows;
  for (std::size_t r = 0; r < kDim; ++r) {
    Vector row = vectors.draw(Kind::kGaussian, kDim);
    if (orthogonal) {
      for (const Vector& other : rows) {
        const auto along = static_cast<float>(dot(row, other) / dot(other, other));
        for (std::size_t i = 0; i < kDim; ++i) row[i] -= along * other[i];
      }
      const auto stretch = static_cast<float>(std::sqrt(kDim / dot(row, row)));
      for (float& value : row) value *= stretch;
    }
    rows.push_back(row);
  }
  return rows;
}

Vector nearest_levels(int bits, const Vector& x) {
  const auto sigma = static_cast<float>(std::sqrt(dot(x, x) / kDim));
  Vector y;
  for (const float value : x) {
    const auto k = std::ranges::upper_bound(thresholds(bits), value / sigma);
    y.push_back(centroids(bits)[static_cast<std::size_t>(k - thresholds(bits).begin())] * sigma);
  }
  return y;
}

Vector with_qjl(int bits, const Vector& x, const Matrix& rows) {
  Vector y = nearest_levels(bits - 1, x);
  Vector rest = x;
  for (std::size_t i = 0; i < kDim; ++i) rest[i] -= y[i];
  const auto scale =
      static_cast<float>(std::sqrt(std::numbers::pi / 2) / kDim * std::sqrt(dot(rest, rest)));
  for (const Vector& row : rows) {
    const float sign = dot(row, rest) < 0 ? -scale : scale;
    for (std::size_t i = 0; i < kDim; ++i) y[i] += sign * row[i];
  }
  return y;
}

struct Outcome {
  double error = 0;     // relative mean square error of the keys
  double slope = 0;     // decoded score / score: 1 is unbiased
  double variance = 0;  // of the error of a score, in units of the scores' own variance
  double kl = 0;        // of the softmax over 512 keys
};

std::vector<double> softmax(const std::vector<double>& scores) {
  std::vector<double> p;
  double sum = 0;
  for (const double score : scores) sum += p.emplace_back(std::exp(score));
  for (double& value : p) value /= sum;
  return p;
}

Outcome measure(auto code) {
  constexpr int kQueries = 200;
  constexpr int kKeys = 512;
  TestVectors vectors(11);
  std::vector<Vector> keys;
  std::vector<Vector> decoded;
  Outcome outcome;
  for (int n = 0; n < kKeys; ++n) {
    keys.push_back(vectors.draw(Kind::kGaussian, kDim));
    decoded.push_back(code(keys.back()));
    Vector rest = keys.back();
    for (std::size_t i = 0; i < kDim; ++i) rest[i] -= decoded.back()[i];
    outcome.error += dot(rest, rest) / dot(keys.back(), keys.back()) / kKeys;
  }
  double product = 0;
  double square = 0;
  double difference = 0;
  for (int n = 0; n < kQueries; ++n) {
    Vector query = vectors.draw(Kind::kGaussian, kDim);
    const float score_deviation = 2;
    for (float& value : query) value *= score_deviation / std::sqrt(static_cast<float>(kDim));
    std::vector<double> exact;
    std::vector<double> coded;
    for (std::size_t k = 0; k < kKeys; ++k) {
      exact.push_back(dot(query, keys[k]));
      coded.push_back(dot(query, decoded[k]));
      product += exact[k] * coded[k];
      square += exact[k] * exact[k];
      difference += (coded[k] - exact[k]) * (coded[k] - exact[k]);
    }
    const std::vector<double> p = softmax(exact);
    const std::vector<double> q = softmax(coded);
    for (std::size_t k = 0; k < kKeys; ++k) outcome.kl += p[k] * std::log(p[k] / q[k]) / kQueries;
  }
  outcome.slope = product / square;
  outcome.variance = difference / square;
  return outcome;
}

Outcome report(int bits, const char* what, const Outcome& outcome) {
  std::printf("%d bits, %-22s error %.4f  slope %.4f  variance %.4f  KL %.5f\n", bits, what,
              outcome.error, outcome.slope, outcome.variance, outcome.kl);
  return outcome;
}

TEST(QjlExperiment, ABitOfCodebookIsWorthMoreThanABitOfSketch) {
  const Matrix gaussian = projection(false);
  const Matrix orthogonal = projection(true);
  for (const int bits : {3, 4}) {
    const Outcome ours =
        report(bits, "codebook, length kept",
               measure([&](const Vector& x) { return Encoded(bits, x).decoded(); }));
    report(bits, "codebook, nearest",
           measure([&](const Vector& x) { return nearest_levels(bits, x); }));
    report(bits, "codebook, unbiased", measure([&](const Vector& x) {
             Vector y = nearest_levels(bits, x);
             const auto stretch = static_cast<float>(dot(x, x) / dot(x, y));
             for (float& value : y) value *= stretch;
             return y;
           }));
    report(bits, "one bit less",
           measure([&](const Vector& x) { return Encoded(bits - 1, x).decoded(); }));
    for (const bool is_orthogonal : {false, true}) {
      const Matrix& rows = is_orthogonal ? orthogonal : gaussian;
      const Outcome qjl = report(bits, is_orthogonal ? "QJL, orthogonal" : "QJL, Gaussian",
                                 measure([&](const Vector& x) { return with_qjl(bits, x, rows); }));
      EXPECT_NEAR(qjl.slope, 1, 0.01);  // unbiased, so it is implemented correctly
      EXPECT_GT(qjl.error, 1.8 * ours.error);
      EXPECT_GT(qjl.variance, 1.8 * ours.variance);
      EXPECT_GT(qjl.kl, 1.8 * ours.kl);
    }
  }
}

}  // namespace
}  // namespace slipstream::turbo
