// KeyMoments: moments of a layer's keys and queries, summed up while a model runs. For each KV head
// they are the number, sum and second moment of its keys, and the second moment of the queries of
// its group. They take a few hundred kilobytes, however long the text is.
//
// Threads: thread-safe. Errors: none; vectors with a number that is not finite are left out.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"

namespace slipstream::turbo {

struct HeadMoments {
  std::int64_t n_keys = 0;
  Eigen::VectorXd key_sum;
  Eigen::MatrixXd key_second;  // sum of k k'
  std::int64_t n_queries = 0;
  Eigen::MatrixXd query_second;
};

class KeyMoments {
 public:
  KeyMoments(std::int64_t n_heads, int head_dim);

  [[nodiscard]] std::int64_t n_heads() const { return n_heads_; }
  [[nodiscard]] int head_dim() const { return head_dim_; }
  [[nodiscard]] HeadMoments head(std::int64_t head) const;

  // Add vectors of head_dim numbers, one after the other. Queries are those of the whole group.
  void add_keys(std::int64_t head, std::span<const float> keys);
  void add_queries(std::int64_t head, std::span<const float> queries);

 private:
  std::int64_t n_heads_;
  int head_dim_;
  mutable Mutex mutex_;
  std::vector<HeadMoments> heads_ SLIP_GUARDED_BY(mutex_);
};

}  // namespace slipstream::turbo
