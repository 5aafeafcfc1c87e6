// Limits: the largest value of everything that could otherwise grow without end. One struct, so
// that a reader finds every maximum in one place and a test can set all of them small. A room adds
// its own field here together with the code that obeys it and the error its caller gets.
//
// Threads: immutable after start.
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
