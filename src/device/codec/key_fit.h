// KeyFit: codes keys in a basis fitted to the keys and queries of their own KV head.
//
//   key    z  = to_codes (k - mean)        query  q' = to_queries q        q'.z = q.(k - mean)
//
// A key's error e changes a score by q.e, so its weight is e' S_q e, where S_q is the second moment
// of the head's queries. Let A = S_q^(1/2), and U the eigenvectors of A S_k A, where S_k is the
// keys' covariance. In the basis U'A the errors of all channels count alike, but the variances
// differ by much. So the first few channels get more bits and the others fewer, with the same sum
// as codes of one width (fitted_layouts).
//
// Threads: immutable. Errors: none; is_fittable() tells beforehand what cannot be done.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/codec/tile.h"

namespace slipstream::turbo {

// What is known of the keys of one KV head. device/fit computes it, a profile stores it.
struct HeadBasis {
  std::vector<float> mean;        // of keys, over all positions
  std::vector<float> directions;  // head_dim x head_dim, row i of U'A, by descending variance
  std::vector<float> variances;   // of the keys in each direction
};

// True for 3 and 4 bits if the head is large enough for classes.
[[nodiscard]] bool is_fittable(int bits, int head_dim);
// The possible classes of fitted keys. None takes more bytes than codes of `bits` bits. To fill
// whole planes, channels of 8 and 4 bits come in multiples of 8, those of 2 bits in multiples of
// 16, those of 3 bits in multiples of 32.
[[nodiscard]] std::vector<ChannelClasses> fitted_layouts(int bits, int head_dim);

// z is in units of the integer levels of each class (codebook.h; at 8 bits the code itself).
// Within a class channels are mixed, so that one set of levels suits all of them.
class KeyFit {
 public:
  // heads: one basis for each KV head of a layer.
  KeyFit(int bits, int head_dim, std::span<const HeadBasis> heads);

  // The layout that suits the heads best: steeply falling variances need a few channels of 8 bits.
  [[nodiscard]] const ChannelClasses& classes() const { return classes_; }
  // False if the directions have no inverse that floats can hold. No fit gives such directions, but
  // a file may hold them.
  [[nodiscard]] bool is_usable() const;
  // A hash of the fit's numbers; never 0. Codes can be decoded only with the fit that made them.
  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] std::span<const float> mean(std::int64_t head) const;
  // The weight of an error in each component of z: the mean square of q'.
  [[nodiscard]] std::span<const float> weights(std::int64_t head) const;
  // Each takes vectors of head_dim numbers, one after the other. The caller has subtracted the mean
  // from the keys.
  void to_codes(std::int64_t head, std::span<const float> keys, std::span<float> z) const {
    multiply(code_columns_, head, keys, z);
  }
  void to_queries(std::int64_t head, std::span<const float> queries, std::span<float> out) const {
    multiply(query_columns_, head, queries, out);
  }
  // Converts one vector back.
  void from_codes(std::int64_t head, std::span<const float> z, std::span<float> key) const;

 private:
  void multiply(std::span<const float> columns, std::int64_t head, std::span<const float> x,
                std::span<float> y) const;

  std::size_t head_dim_;
  ChannelClasses classes_;
  std::uint64_t id_;
  std::vector<float> means_;
  std::vector<float> weights_;
  // One matrix per head, column after column (multiply_fast).
  std::vector<float> code_columns_;
  std::vector<float> query_columns_;
};

}  // namespace slipstream::turbo
