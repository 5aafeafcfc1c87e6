// ExpertCounters: what streaming the experts of a layer took so far.
//
// Threads: as its owner says. Errors: none.
#pragma once

#include <cstdint>

namespace slipstream::turbo {

struct ExpertCounters {
  std::uint64_t layer = 0;
  std::uint64_t n_hits = 0;          // experts that a batch needed and found in memory
  std::uint64_t n_misses = 0;        // and that had to be read
  std::uint64_t n_guessed = 0;       // read ahead of a batch
  std::uint64_t n_guessed_used = 0;  // and needed by it
  std::uint64_t n_bytes_read = 0;
  std::uint64_t stall_ns = 0;  // for which computing waited

  // Adds what another layer, or the same one of another model, took.
  ExpertCounters& operator+=(const ExpertCounters& other) {
    n_hits += other.n_hits;
    n_misses += other.n_misses;
    n_guessed += other.n_guessed;
    n_guessed_used += other.n_guessed_used;
    n_bytes_read += other.n_bytes_read;
    stall_ns += other.stall_ns;
    return *this;
  }
};

}  // namespace slipstream::turbo
