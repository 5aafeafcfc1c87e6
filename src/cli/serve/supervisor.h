// supervise(): the parent of `serve --supervise`. It holds the listening socket, so that clients
// who connect while nobody serves wait in the socket's queue, and runs this program again as its
// child, which serves. A child that crashes is started again: at once the first time, later and
// later when it crashes soon each time. One that was never ready is not: its end, such as for a
// model that is not there, is that of the parent.
//
// The child is a new program (exec), not a copy: it has another layout of memory each time, so that
// crashes teach an attacker nothing. The parent has no threads, loads nothing, and talks to nobody:
// it waits for signals, passes SIGTERM, SIGINT and SIGHUP on, and ends when its child does. A child
// dies with its parent.
//
// Threads: none. Errors: those of the child, as exit status.
#pragma once

#include <optional>

#include "base/unique_fd.h"

namespace slipstream::serve {

// The exit status. `argv` is that of main().
int supervise(UniqueFd listener, char** argv);

// In the child: how often it was started again. None: no supervisor started this process.
[[nodiscard]] std::optional<int> n_restarts_by_supervisor();
// In the child: it is ready. Elsewhere nothing.
void tell_supervisor();

}  // namespace slipstream::serve
