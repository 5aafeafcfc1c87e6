// supervise(): the parent process of `serve --supervise`. It holds the listening socket, so that
// clients that connect while nobody serves wait in its queue, and runs this program again as a
// child that serves. A crashed child is restarted: at once the first time, then after growing
// pauses if it keeps crashing soon. If no child was ever ready (the model is missing, for example),
// the parent ends with the child's status.
//
// The child is a new program (exec), not a copy: its memory layout differs each time, so that
// crashes teach an attacker nothing. The parent has no threads, loads nothing and talks to nobody:
// it waits for signals, passes on SIGTERM, SIGINT and SIGHUP, and ends when its child does. The
// child dies with its parent.
//
// Threads: none. Errors: those of the child, as exit status.
#pragma once

#include <optional>

#include "base/unique_fd.h"

namespace slipstream::serve {

// Returns the exit status. `argv` is that of main().
int supervise(UniqueFd listener, char** argv);

// In the child: how often it was restarted. nullopt if no supervisor started this process.
[[nodiscard]] std::optional<int> n_restarts_by_supervisor();
// In the child: reports that it is ready. Elsewhere it does nothing.
void tell_supervisor();

}  // namespace slipstream::serve
