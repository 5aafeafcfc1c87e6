// KeyFit: codes of keys that are fitted to the keys and queries of their own KV head.
//
// A key's error e counts through q.e, so by e' S_q e, where S_q is the second moment of the head's
// queries. A change of basis by A = S_q^(1/2) and the eigenvectors U of A S_k A (S_k: the keys'
// covariance) gives channels whose errors count alike and whose variances differ by much: the first
// few get more bits, the others less, and the sum is that of codes of one width (fitted_layouts).
//
//   key    z  = to_codes (k - mean)        query  q' = to_queries q        q'.z = q.(k - mean)
//
// z is in units of the integer levels of each class (codebook.h; at 8 bits the code itself).
// Within a class channels are mixed, so that one set of levels suits all.
//
// Threads: immutable. Errors: none; is_fittable() says beforehand what cannot be done.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/codec/tile.h"

namespace slipstream::turbo {

// What is known of the keys of one KV head (device/fit makes it, a profile holds it).
struct HeadBasis {
  std::vector<float> mean;        // of keys, over all positions
  std::vector<float> directions;  // head_dim x head_dim, row i of U'A, by descending variance
  std::vector<float> variances;   // of the keys in each direction
};

// Of 3 and 4 bits, and heads that are large enough for classes.
[[nodiscard]] bool is_fittable(int bits, int head_dim);
// What the classes of fitted keys may be: none takes more bytes than codes of `bits` bits. Whole
// planes need channels by 8 of 8 and 4 bits, by 16 of 2, by 32 of 3.
[[nodiscard]] std::vector<ChannelClasses> fitted_layouts(int bits, int head_dim);

class KeyFit {
 public:
  // One basis for each KV head of a layer.
  KeyFit(int bits, int head_dim, std::span<const HeadBasis> heads);

  // The layout that suits the heads best: steep variances want a few channels of 8 bits.
  [[nodiscard]] const ChannelClasses& classes() const { return classes_; }
  // False where directions have no inverse that floats can hold: no fit comes out so, a file may.
  [[nodiscard]] bool is_usable() const;
  // Of these numbers; never 0. Codes mean something only with the fit that they were made with.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] std::span<const float> mean(std::int64_t head) const;
  // What an error of each component of z counts: the mean square of q'.
  [[nodiscard]] std::span<const float> weights(std::int64_t head) const;
  // Vectors of head_dim numbers, one after the other. Keys without their mean.
  void to_codes(std::int64_t head, std::span<const float> keys, std::span<float> z) const {
    multiply(code_columns_, head, keys, z);
  }
  void to_queries(std::int64_t head, std::span<const float> queries, std::span<float> out) const {
    multiply(query_columns_, head, queries, out);
  }
  // One vector.
  void from_codes(std::int64_t head, std::span<const float> z, std::span<float> key) const;

 private:
  void multiply(std::span<const float> columns, std::int64_t head, std::span<const float> x,
                std::span<float> y) const;

  std::size_t head_dim_;
  ChannelClasses classes_;
  std::uint64_t id_;
  std::vector<float> means_;
  std::vector<float> weights_;
  // A matrix for each head, column after column (multiply_fast).
  std::vector<float> code_columns_;
  std::vector<float> query_columns_;
};

}  // namespace slipstream::turbo
