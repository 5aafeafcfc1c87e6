// Listening sockets: open_listener() makes one. inherited_listener() takes over the socket that the
// parent process opened, as systemd passes it (LISTEN_FDS). A client that connects while nobody
// accepts waits in the socket's queue.
//
// Threads: call these before other threads start, because the environment is changed.
// Errors:  the errors of the address.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream {

[[nodiscard]] Result<UniqueFd> open_listener(const std::string& host, std::uint16_t port);

// Returns an empty descriptor if no socket was passed. The inherited socket is not passed
// on to children.
[[nodiscard]] Result<UniqueFd> inherited_listener();

}  // namespace slipstream
