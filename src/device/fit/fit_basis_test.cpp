#include "device/fit/fit_basis.h"

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <limits>
#include <random>

namespace slipstream::turbo {
namespace {

constexpr int kBasisDim = 16;

// Vectors with a mean and with components that all depend on each other.
std::vector<float> draw(std::mt19937& random, int n, double mean, unsigned shape_seed) {
  std::mt19937 shape(shape_seed);
  std::normal_distribution<double> normal;
  Eigen::MatrixXd mix(kBasisDim, kBasisDim);
  for (double& number : mix.reshaped()) number = normal(shape);
  mix.col(0) *= 20;  // like RoPE's slow pairs in a real model
  std::vector<float> vectors;
  for (int i = 0; i < n; ++i) {
    Eigen::VectorXd noise(kBasisDim);
    for (double& number : noise) number = normal(random);
    for (const double number : Eigen::VectorXd(mix * noise)) {
      vectors.push_back(static_cast<float>(number + mean));
    }
  }
  return vectors;
}

HeadMoments some_moments(int n_keys = 2000, int n_queries = 4000) {
  std::mt19937 random(2);
  KeyMoments moments(1, kBasisDim);
  moments.add_keys(0, draw(random, n_keys, 3, 10));
  moments.add_queries(0, draw(random, n_queries, -1, 11));
  return moments.head(0);
}

Eigen::MatrixXd directions_of(const HeadBasis& basis) {
  using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const FloatRows>(basis.directions.data(), kBasisDim, kBasisDim).cast<double>();
}

TEST(FitBasis, ErrorsCountAlikeAndVariancesFall) {
  const HeadMoments moments = some_moments();
  const std::optional<HeadBasis> basis = fit_basis(moments);
  ASSERT_TRUE(basis.has_value());
  const Eigen::MatrixXd directions = directions_of(*basis);
  const Eigen::MatrixXd weight = moments.query_second / static_cast<double>(moments.n_queries);
  const Eigen::VectorXd mean = moments.key_sum / static_cast<double>(moments.n_keys);
  const Eigen::MatrixXd covariance =
      moments.key_second / static_cast<double>(moments.n_keys) - mean * mean.transpose();
  // An error e counts the same in every direction: e' D^-1' S_q D^-1 e = e'e.
  EXPECT_TRUE((directions * weight.inverse() * directions.transpose()).isIdentity(1e-3));
  const Eigen::MatrixXd of_codes = directions * covariance * directions.transpose();
  for (int i = 0; i < kBasisDim; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_NEAR(basis->mean[at], mean[i], 1e-5);
    EXPECT_NEAR(of_codes(i, i) / double{basis->variances[at]}, 1, 1e-3);
    if (i > 0) {
      EXPECT_LE(basis->variances[at], basis->variances[at - 1]);
    }
    for (int j = 0; j < i; ++j) {
      EXPECT_LT(std::abs(of_codes(i, j)), 1e-3 * std::sqrt(of_codes(i, i) * of_codes(j, j)));
    }
  }
}

TEST(FitBasis, KeysAndScoresComeBack) {
  const std::optional<HeadBasis> basis = fit_basis(some_moments());
  ASSERT_TRUE(basis.has_value());
  const Eigen::MatrixXd directions = directions_of(*basis);
  const Eigen::VectorXd mean =
      Eigen::Map<const Eigen::VectorXf>(basis->mean.data(), kBasisDim).cast<double>();
  const Eigen::VectorXd key = Eigen::VectorXd::LinSpaced(kBasisDim, -3, 5);
  const Eigen::VectorXd query = Eigen::VectorXd::LinSpaced(kBasisDim, 2, -2);
  const Eigen::VectorXd code = directions * (key - mean);
  EXPECT_TRUE((directions.inverse() * code + mean).isApprox(key, 1e-6));
  EXPECT_NEAR((directions.inverse().transpose() * query).dot(code) + query.dot(mean),
              query.dot(key), 1e-6);
}

TEST(FitBasis, NeedsEnoughThatDiffers) {
  EXPECT_TRUE(fit_basis(some_moments(2 * kBasisDim, 2 * kBasisDim)).has_value());
  EXPECT_FALSE(fit_basis(some_moments(2 * kBasisDim - 1, 1000)).has_value());
  EXPECT_FALSE(fit_basis(some_moments(1000, 2 * kBasisDim - 1)).has_value());
  HeadMoments no_keys = some_moments();
  no_keys.key_second.setZero();
  no_keys.key_sum.setZero();
  EXPECT_FALSE(fit_basis(no_keys).has_value());
  HeadMoments no_queries = some_moments();
  no_queries.query_second.setZero();
  EXPECT_FALSE(fit_basis(no_queries).has_value());
  HeadMoments not_finite = some_moments();
  not_finite.key_second(1, 2) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(fit_basis(not_finite).has_value());
  HeadMoments too_large = some_moments();
  too_large.key_second *= 1e60;
  EXPECT_FALSE(fit_basis(too_large).has_value());
}

TEST(FitBasis, HoldsWhereQueriesNeverPoint) {
  HeadMoments flat = some_moments();
  flat.query_second.row(3).setZero();
  flat.query_second.col(3).setZero();
  const std::optional<HeadBasis> basis = fit_basis(flat);
  ASSERT_TRUE(basis.has_value());
  EXPECT_TRUE(directions_of(*basis).inverse().allFinite());
  for (const float variance : basis->variances) EXPECT_GT(variance, 0);
}

}  // namespace
}  // namespace slipstream::turbo
