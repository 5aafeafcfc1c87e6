// Listening sockets: open_listener() makes one; inherited_listener() takes the one that whoever
// started this process has opened for it, as systemd hands it over (LISTEN_FDS). A client that
// connects to it while nobody accepts waits in its queue.
//
// Threads: before there are others: the environment is changed. Errors: as of the address.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slipstream {

[[nodiscard]] Result<UniqueFd> open_listener(const std::string& host, std::uint16_t port);

// Empty: nobody has opened one. What was inherited is not passed on to children.
[[nodiscard]] Result<UniqueFd> inherited_listener();

}  // namespace slipstream
