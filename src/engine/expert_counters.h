// ExpertCounters: what streaming the experts of all loaded models took so far, as the plugin counts
// it, by layer.
//
// Threads: thread-safe. Errors: none; nothing where nothing is streamed.
#pragma once

#include <cstdint>
#include <vector>

namespace slipstream {

struct ExpertCounters {
  std::uint64_t layer = 0;
  std::uint64_t n_hits = 0;          // experts that a batch needed and found in memory
  std::uint64_t n_misses = 0;        // and that had to be read
  std::uint64_t n_guessed = 0;       // read ahead of a batch
  std::uint64_t n_guessed_used = 0;  // and needed by it
  std::uint64_t n_bytes_read = 0;
  std::uint64_t stall_ns = 0;  // for which computing waited
};

[[nodiscard]] std::vector<ExpertCounters> read_expert_counters();

}  // namespace slipstream
