// Runs a child process that gets a text, returns one, and reports progress on standard error.
//
// It is written directly on posix_spawn(3): Boost.Process 2 has become a library of its own, which
// nothing else here needs, and it would not end a child when a descriptor says so.
//
// Threads: thread-safe.
// Errors:  kIo if the child cannot be started or read, kOverloaded if it was ended because it went
//          past a limit, kCancelled if it was told to stop. How the child ended is not an error: see
//          ChildEnd.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream {

struct ChildEnd {
  int status = 0;         // exit status; -1 if a signal ended it
  int signal = 0;         // which one; 0 if none
  std::string out;        // all of its standard output, up to ChildLimits::n_out_bytes
  std::string complaint;  // the last lines of its standard error that `on_line` refused
};

inline constexpr std::size_t kChildOutBytesMax = std::size_t{64} << 20;

// Gets each line of standard error. It returns false if the line is a complaint.
using OnLine = std::function<bool(std::string_view line)>;

struct ChildLimits {
  std::chrono::milliseconds time = std::chrono::milliseconds::max();
  std::size_t n_out_bytes = kChildOutBytesMax;
  std::size_t n_error_bytes = std::numeric_limits<std::size_t>::max();
  int stop_fd = -1;  // once it can be read, the child is ended; -1: none
};

// The child gets its input, output and errors, and no other open file of this process. It has no
// signals blocked.
[[nodiscard]] Result<ChildEnd> run_child(const std::vector<std::string>& command,
                                         std::string_view input, const OnLine& on_line,
                                         const ChildLimits& limits = {});

// Starts a child with these descriptors as its input, output and errors. The caller waits for it.
[[nodiscard]] Result<pid_t> spawn_child(const std::vector<std::string>& command, int in, int out,
                                        int error);

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
[[nodiscard]] Result<Pipe> make_pipe();

}  // namespace slipstream
