// ReadingStats: what a ReadingWorker has done.
//
// Threads: plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slipstream {

struct ReadingStats {
  std::int64_t n_texts = 0;
  std::int64_t n_tokens = 0;
  std::int64_t n_batches = 0;
  double seconds = 0;         // in which batches were computed
  std::size_t n_waiting = 0;  // texts
};

}  // namespace slipstream
