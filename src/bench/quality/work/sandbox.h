// Sandbox: runs Python programs that a model has written (docs/decisions/021-code-in-a-sandbox.md).
//
// bubblewrap gives a program namespaces of its own: it sees /usr, read-only, and nothing else: no
// other file, no process, no network, no environment. It has no capabilities, can start no process,
// and is stopped at its limits.
//
// Threads: thread-compatible.
// Errors:  open(): kUnsupported, with what to install or to allow. run(): kIo if the program cannot
//          be started; kCancelled after a signal. A program that fails or is stopped is no error.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace slipstream::quality {

struct RunLimits {
  int n_cpu_seconds = 2;
  // A program may sleep, and a machine may be busy.
  std::chrono::milliseconds time = std::chrono::seconds(20);
  std::size_t memory_bytes = std::size_t{256} << 20;
  std::size_t n_out_bytes = std::size_t{64} << 10;  // as much again on standard error
};

class Sandbox {
 public:
  struct Run {
    bool ended = false;     // by itself, with status 0
    std::string out;        // what it printed; empty if it was stopped
    std::string complaint;  // the end of its standard error
  };

  // Looks for bubblewrap and Python, and tries them.
  [[nodiscard]] static Result<Sandbox> open(const RunLimits& limits = {});
  [[nodiscard]] Result<Run> run(const std::string& program) const;

 private:
  Sandbox(const RunLimits& limits, std::vector<std::string> command)
      : limits_(limits), command_(std::move(command)) {}

  RunLimits limits_;
  std::vector<std::string> command_;  // all but the program
};

}  // namespace slipstream::quality
