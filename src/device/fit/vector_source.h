// Where the vectors of an attention come from: the ROPE that turned them to their positions, seen
// through nodes that only move or scale them.
//
// Threads: thread-safe.
#pragma once

#include <ggml.h>

#include <string>

namespace slipstream::turbo {

struct VectorSource {
  const ggml_tensor* rope = nullptr;  // null: they have no position
  float factor = 1;                   // what its result is multiplied by afterwards
  // Why vectors at other positions cannot be known; empty if they can.
  std::string obstacle;
};

// `tensor`: the queries as attention reads them, or the keys as the cache is given them.
[[nodiscard]] VectorSource find_source(const ggml_tensor* tensor);

}  // namespace slipstream::turbo
