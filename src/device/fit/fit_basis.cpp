#include "device/fit/fit_basis.h"

#include <Eigen/Eigenvalues>
#include <span>

namespace slipstream::turbo {
namespace {

// Smaller shares are raised to these. Queries hardly ever point in such directions, and floats must
// be able to hold the inverse.
constexpr double kQueryShareMin = 1e-6;
constexpr double kVarianceShareMin = 1e-12;

std::vector<float> to_floats(std::span<const double> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

std::optional<HeadBasis> fit_basis(const HeadMoments& moments) {
  const Eigen::Index head_dim = moments.key_sum.size();
  // Requires twice as many vectors as a covariance of full rank needs.
  if (moments.n_keys < 2 * head_dim || moments.n_queries < 2 * head_dim) return std::nullopt;
  const auto n_keys = static_cast<double>(moments.n_keys);
  const Eigen::VectorXd mean = moments.key_sum / n_keys;
  const Eigen::MatrixXd covariance = moments.key_second / n_keys - mean * mean.transpose();
  const Eigen::MatrixXd weight = moments.query_second / static_cast<double>(moments.n_queries);
  if (!covariance.allFinite() || !weight.allFinite()) return std::nullopt;

  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> of_queries(weight);
  if (of_queries.info() != Eigen::Success) return std::nullopt;
  const double largest = of_queries.eigenvalues().maxCoeff();
  if (!(largest > 0)) return std::nullopt;
  const Eigen::VectorXd roots =
      of_queries.eigenvalues().cwiseMax(kQueryShareMin * largest).cwiseSqrt();
  const Eigen::MatrixXd root =
      of_queries.eigenvectors() * roots.asDiagonal() * of_queries.eigenvectors().transpose();

  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> of_keys(root * covariance * root);
  if (of_keys.info() != Eigen::Success) return std::nullopt;
  Eigen::VectorXd variances = of_keys.eigenvalues().reverse();  // the solver's are ascending
  if (!(variances[0] > 0)) return std::nullopt;
  variances = variances.cwiseMax(kVarianceShareMin * variances[0]);
  // Column i is direction i. Columns lie in memory as the rows of the basis have to.
  const Eigen::MatrixXd directions = root * of_keys.eigenvectors().rowwise().reverse();

  HeadBasis basis;
  const auto n = static_cast<std::size_t>(head_dim);
  basis.mean = to_floats({mean.data(), n});
  basis.directions = to_floats({directions.data(), n * n});
  basis.variances = to_floats({variances.data(), n});
  // Some numbers may not be finite as floats: keys of 1e20 are, but their squares are not.
  for (const std::vector<float>* numbers : {&basis.mean, &basis.directions, &basis.variances}) {
    const Eigen::Map<const Eigen::VectorXf> all(numbers->data(),
                                                static_cast<Eigen::Index>(numbers->size()));
    if (!all.allFinite()) return std::nullopt;
  }
  if (!(basis.variances.back() > 0)) return std::nullopt;
  return basis;
}

}  // namespace slipstream::turbo
