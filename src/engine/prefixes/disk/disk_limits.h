// DiskLimits: how much of prefixes is kept on disk.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct DiskLimits {
  // Prefixes on disk (engine/prefixes/disk). A longer one is not written, and a file that claims to
  // hold one is corrupt.
  std::size_t prefix_tokens_max = std::size_t{1} << 20;
  std::size_t prefix_state_bytes_max = std::size_t{4} << 30;
  // Prefixes that wait for the disk, with the one that is being written: more are not taken.
  std::size_t n_prefix_writes_max = 8;
  std::size_t prefix_writes_bytes_max = std::size_t{4} << 30;
  // With more files than this those used longest ago are deleted, as with more bytes than
  // configured.
  std::size_t n_prefix_files_max = 16'384;
  // What prefixes leave free on a disk, unless 5 % of the disk is less.
  std::size_t disk_reserve_bytes_max = std::size_t{1} << 30;
};

inline constexpr DiskLimits kDiskLimits{};

}  // namespace slipstream
