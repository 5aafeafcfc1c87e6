// Test support: KV heads with known keys and queries. As in real models, a few directions decide
// most of a score.
//
// Threads: thread-compatible.
#pragma once

#include <cmath>
#include <random>
#include <span>
#include <vector>

#include "device/codec/key_fit.h"
#include "device/codec/rotation.h"

namespace slipstream::turbo {

inline std::vector<ChannelClasses> all_fitted_layouts() {
  std::vector<ChannelClasses> all;
  for (const int head_dim : {48, 64, 80, 96, 112, 128, 192, 256}) {
    for (const int bits : {3, 4}) all.append_range(fitted_layouts(bits, head_dim));
  }
  return all;
}

// Bases whose directions are rotated unit vectors, so that queries of moment 1 fit them. Variances
// start at 8 and fall by a factor of e^fall from the first direction to the last.
inline std::vector<HeadBasis> test_bases(std::size_t n_heads, int head_dim, float fall = 8) {
  const auto n = static_cast<std::size_t>(head_dim);
  std::vector<HeadBasis> heads;
  for (std::size_t head = 0; head < n_heads; ++head) {
    HeadBasis basis{
        .mean = std::vector<float>(n), .directions = {}, .variances = std::vector<float>(n)};
    for (std::size_t i = 0; i < n; ++i) {
      basis.mean[i] = std::sin(static_cast<float>(i + 7 * head));
      basis.variances[i] = 8 * std::exp(-fall * static_cast<float>(i) / static_cast<float>(n));
      std::vector<float> direction(n);
      direction[(i * 11 + head) % n] = 1;
      Rotation(head_dim).forward(direction);
      basis.directions.append_range(direction);
    }
    heads.push_back(std::move(basis));
  }
  return heads;
}

// Draws keys and queries that have the moments of a basis of test_bases().
class TestHead {
 public:
  explicit TestHead(const HeadBasis& basis) : basis_(basis) {}

  std::vector<float> key() {
    std::vector<float> key = basis_.mean;
    const std::size_t n = key.size();
    for (std::size_t i = 0; i < n; ++i) {
      const float size = std::sqrt(basis_.variances[i]) * normal_(random_);
      for (std::size_t c = 0; c < n; ++c) key[c] += size * basis_.directions[i * n + c];
    }
    return key;
  }
  std::vector<float> query() {
    std::vector<float> query(basis_.mean.size());
    for (float& number : query) number = normal_(random_);
    return query;
  }

 private:
  const HeadBasis& basis_;
  std::mt19937 random_{5};
  std::normal_distribution<float> normal_;
};

}  // namespace slipstream::turbo
