#include "device/fit/key_moments.h"

namespace slipstream::turbo {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Rows finite_rows(std::span<const float> vectors, int head_dim) {
  using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto n = static_cast<Eigen::Index>(vectors.size()) / head_dim;
  const Eigen::Map<const FloatRows> all(vectors.data(), n, head_dim);
  Rows rows(n, head_dim);
  Eigen::Index n_finite = 0;
  for (Eigen::Index i = 0; i < n; ++i) {
    if (all.row(i).allFinite()) rows.row(n_finite++) = all.row(i).cast<double>();
  }
  rows.conservativeResize(n_finite, Eigen::NoChange);
  return rows;
}

}  // namespace

KeyMoments::KeyMoments(std::int64_t n_heads, int head_dim)
    : n_heads_(n_heads), head_dim_(head_dim), heads_(static_cast<std::size_t>(n_heads)) {
  for (HeadMoments& head : heads_) {
    head.key_sum = Eigen::VectorXd::Zero(head_dim);
    head.key_second = Eigen::MatrixXd::Zero(head_dim, head_dim);
    head.query_second = Eigen::MatrixXd::Zero(head_dim, head_dim);
  }
}

HeadMoments KeyMoments::head(std::int64_t head) const {
  const MutexLock lock(mutex_);
  return heads_[static_cast<std::size_t>(head)];
}

// The products are computed before the lock is taken, because many threads add heads.
void KeyMoments::add_keys(std::int64_t head, std::span<const float> keys) {
  const Rows rows = finite_rows(keys, head_dim_);
  const Eigen::VectorXd sum = rows.colwise().sum().transpose();
  const Eigen::MatrixXd second = rows.transpose() * rows;
  const MutexLock lock(mutex_);
  HeadMoments& moments = heads_[static_cast<std::size_t>(head)];
  moments.n_keys += rows.rows();
  moments.key_sum += sum;
  moments.key_second += second;
}

void KeyMoments::add_queries(std::int64_t head, std::span<const float> queries) {
  const Rows rows = finite_rows(queries, head_dim_);
  const Eigen::MatrixXd second = rows.transpose() * rows;
  const MutexLock lock(mutex_);
  HeadMoments& moments = heads_[static_cast<std::size_t>(head)];
  moments.n_queries += rows.rows();
  moments.query_second += second;
}

}  // namespace slipstream::turbo
