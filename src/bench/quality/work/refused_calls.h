// A seccomp filter for programs in a sandbox: the bytes that bwrap's --seccomp reads.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <string>

namespace slipstream::quality {

// Refuses, with EPERM, calls that start processes, take memory that no limit counts, or reach parts
// of the kernel that a program of numbers and texts has no need for. Ends programs that make calls
// of another architecture.
[[nodiscard]] std::string refused_calls();

}  // namespace slipstream::quality
