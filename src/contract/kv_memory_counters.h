// KvMemoryCounters: what KV caches took whose codes are in memory in part, and the rest in a file
// (environment.h, kKvMemoryVariable). Codes are counted in slabs: a chunk of one head, or a few.
//
// Threads: as its owner says. Errors: none.
#pragma once

#include <cstdint>

namespace slipstream::turbo {

struct KvMemoryCounters {
  std::uint64_t n_hits = 0;    // slabs that were needed and in memory
  std::uint64_t n_misses = 0;  // and those that had to be read
  std::uint64_t n_bytes_read = 0;
  std::uint64_t n_bytes_written = 0;
  std::uint64_t n_failed_reads = 0;  // of several slabs at once
  std::uint64_t n_failed_writes = 0;
  std::uint64_t n_bytes_resident = 0;  // in memory now
};

}  // namespace slipstream::turbo
