// A child process that is given a text, returns one, and reports progress on standard error.
// It dies with its parent, and a parent that is told to stop (SIGINT, SIGTERM) ends it first.
//
// Written by hand on posix_spawn(3): Boost.Process 2 has become a library of its own, which nothing
// else here needs, and would still leave the signals to us.
//
// Threads: one call at a time, by the thread that handles signals.
// Errors:  kIo where it cannot be started or read, kCancelled after a signal. How it ended is no
//          error of ours: see ChildEnd.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream::bench {

struct ChildEnd {
  int status = 0;         // of exit(); -1: a signal ended it
  int signal = 0;         // which one; 0: none
  std::string out;        // all of its standard output, up to kChildOutBytesMax
  std::string complaint;  // the last lines of its standard error that `on_line` did not take
};

inline constexpr std::size_t kChildOutBytesMax = std::size_t{64} << 20;

// Each line of standard error goes to on_line; false: it is a complaint.
using OnLine = std::function<bool(std::string_view line)>;

[[nodiscard]] Result<ChildEnd> run_child(const std::vector<std::string>& command,
                                         std::string_view input, const OnLine& on_line);

// For the child: end when the parent does.
void die_with_parent();

}  // namespace slipstream::bench
