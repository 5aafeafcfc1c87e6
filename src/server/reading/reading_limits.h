// ReadingLimits: what requests for vectors and ranks may ask for.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct ReadingLimits {
  // More texts or documents in a request are a 400. OpenAI's and Jina's limit.
  std::size_t texts_max = 2048;
  // More tokens of all texts of a request, or of all its pairs of a query and a document, are a 400.
  std::size_t tokens_max = std::size_t{1} << 22;
  // What all requests hold together: tokens, rows, and the text of the answer. A request that has
  // no room beside others is a 503.
  std::size_t bytes_max = std::size_t{256} << 20;
  std::size_t requests_max = 256;  // that wait; more are a 503
};

inline constexpr ReadingLimits kReadingLimits{};

}  // namespace slipstream
