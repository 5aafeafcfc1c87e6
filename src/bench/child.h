// A child process that a signal to its parent ends, and the parent's end too.
//
// run_child_until_signal() is run_child() of base/child.h, but a parent that is told to stop (SIGINT,
// SIGTERM) ends the child first.
//
// Threads: one call at a time, by the thread that handles signals.
// Errors:  as of base/child.h; kCancelled after a signal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/child.h"

namespace slipstream::bench {

// REQUIRES: limits has no stop_fd.
[[nodiscard]] Result<ChildEnd> run_child_until_signal(const std::vector<std::string>& command,
                                                      std::string_view input, const OnLine& on_line,
                                                      ChildLimits limits = {});

// Called in the child: ends it when the parent ends.
void die_with_parent();

}  // namespace slipstream::bench
