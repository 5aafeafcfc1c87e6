// Limits: the largest value of what this room would otherwise let grow without end. Every room that
// reads what others wrote has such a struct beside the code that obeys it (*_limits.h), so that a
// test can set all of them small.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct Limits {
  // read_small_file() refuses longer files: it is meant for /proc, /sys and configuration.
  std::size_t small_file_bytes_max = std::size_t{1} << 20;
  // A longer log line is cut and says so (log.h): one huge value must not fill a disk.
  std::size_t log_line_bytes_max = std::size_t{16} << 10;
};

inline constexpr Limits kLimits{};

}  // namespace slipstream
