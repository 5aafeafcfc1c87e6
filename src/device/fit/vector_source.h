// Finds where the vectors of an attention come from: the ROPE that turned them to their positions.
// Nodes in between that only move or scale vectors are skipped.
//
// Threads: thread-safe.
#pragma once

#include <ggml.h>

#include <string>

namespace slipstream::turbo {

struct VectorSource {
  const ggml_tensor* rope = nullptr;  // null: the vectors do not depend on a position
  float factor = 1;                   // by which the result of the ROPE is multiplied afterwards
  // The reason why vectors at other positions cannot be computed; empty if they can.
  std::string obstacle;
};

// tensor: the queries as attention reads them, or the keys as they are written into the cache.
[[nodiscard]] VectorSource find_source(const ggml_tensor* tensor);

}  // namespace slipstream::turbo
