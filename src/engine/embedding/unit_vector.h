// Scales vectors to length 1, in which two of them compare by their dot product.
//
// Threads: immutable. Errors: none. A vector of zeros stays one.
#pragma once

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace slipstream {

inline void scale_to_length_one(std::vector<float>& vector) {
  const double squares = std::transform_reduce(vector.begin(), vector.end(), 0.0, std::plus<>(),
                                               [](double value) { return value * value; });
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  for (float& value : vector) value = static_cast<float>(value * scale);
}

}  // namespace slipstream
