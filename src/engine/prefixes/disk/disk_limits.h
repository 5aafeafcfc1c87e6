// DiskLimits: how much may be kept on disk as prefixes.
//
// Threads: immutable.
#pragma once

#include <chrono>
#include <cstddef>

namespace slipstream {

struct DiskLimits {
  // Prefixes on disk (engine/prefixes/disk). A larger prefix is not written, and a file that claims
  // to hold one is corrupt.
  std::size_t prefix_tokens_max = std::size_t{1} << 20;
  std::size_t prefix_state_bytes_max = std::size_t{4} << 30;
  // Prefixes that wait for the disk, including the one being written. No more are accepted.
  std::size_t n_prefix_writes_max = 8;
  std::size_t prefix_writes_bytes_max = std::size_t{4} << 30;
  // Beyond this number of files, the least recently used are deleted, as when the configured size
  // is exceeded.
  std::size_t n_prefix_files_max = 16'384;
  // How long a prefix waits while another process writes to the same directory.
  std::chrono::milliseconds turn_wait_max = std::chrono::seconds(5);
  // Free space that prefixes leave on a disk; 5 % of the disk if that is less.
  std::size_t disk_reserve_bytes_max = std::size_t{1} << 30;
};

inline constexpr DiskLimits kDiskLimits{};

}  // namespace slipstream
