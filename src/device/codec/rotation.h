// Rotation: the orthonormal change of basis that makes every key and value look like independent
// Gaussians. It flips signs, then applies a normalised Walsh-Hadamard transform. It keeps lengths
// and dot products, so attention rotates the query once instead of rotating the cache back.
//
// Signs are flipped because the transform alone concentrates regular vectors: a constant one would
// become one huge component. With random signs, only an input made for these signs does that.
// The transform needs a power of two. Other dims are cut into the powers of two of their binary
// expansion, largest first (80 = 64 + 16, 576 = 512 + 64). That needs no padding, but an outlier is
// spread over its own block only.
//
// Threads: immutable after construction. Errors: none; a dim that is not supported is a bug.
#pragma once

#include <span>
#include <vector>

#include "contract/tile.h"

namespace slipstream::turbo {

class Rotation {
 public:
  // REQUIRES: is_code_head(dim). No block is smaller than 16.
  explicit Rotation(int dim);

  // Both work in place; x has dim() components. The order of the additions is part of the contract
  // (stages of distance 1, 2, 4, ..., then one multiplication), so that kernels can be compared bit
  // by bit.
  void forward(std::span<float> x) const;
  void inverse(std::span<float> x) const;

  [[nodiscard]] int dim() const { return static_cast<int>(signs_.size()); }
  // Sign i is +1 or -1 by the top bit of the i-th output of splitmix64 with a fixed seed. Signs are
  // the same on every machine, and every dim uses the first dim() of one sequence.
  [[nodiscard]] std::span<const float> signs() const { return signs_; }
  // Sizes of the blocks in order; they sum to dim().
  [[nodiscard]] std::span<const int> blocks() const { return blocks_; }

 private:
  void transform(std::span<float> x) const;
  void flip_signs(std::span<float> x) const;

  std::vector<float> signs_;
  std::vector<int> blocks_;
};

}  // namespace slipstream::turbo
