// Runs a child process that gets a text, returns one, and reports progress on standard error. The
// child dies with its parent, and a parent that is told to stop (SIGINT, SIGTERM) ends it first.
//
// It is written directly on posix_spawn(3): Boost.Process 2 has become a library of its own, which
// nothing else here needs, and it would not handle the signals.
//
// Threads: one call at a time, by the thread that handles signals.
// Errors:  kIo if the child cannot be started or read, kOverloaded if it was ended because it went
//          past a limit, kCancelled after a signal. How the child ended is not an error: see
//          ChildEnd.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream::bench {

struct ChildEnd {
  int status = 0;         // exit status; -1 if a signal ended it
  int signal = 0;         // which one; 0 if none
  std::string out;        // all of its standard output, up to kChildOutBytesMax
  std::string complaint;  // the last lines of its standard error that `on_line` refused
};

inline constexpr std::size_t kChildOutBytesMax = std::size_t{64} << 20;

// Gets each line of standard error. It returns false if the line is a complaint.
using OnLine = std::function<bool(std::string_view line)>;

struct ChildLimits {
  std::chrono::milliseconds time = std::chrono::milliseconds::max();
  std::size_t n_out_bytes = kChildOutBytesMax;
  std::size_t n_error_bytes = std::numeric_limits<std::size_t>::max();
};

// The child gets its input, output and errors, and no other open file of this process.
[[nodiscard]] Result<ChildEnd> run_child(const std::vector<std::string>& command,
                                         std::string_view input, const OnLine& on_line,
                                         const ChildLimits& limits = {});

// Called in the child: ends it when the parent ends.
void die_with_parent();

}  // namespace slipstream::bench
