// tell_service_manager(): the state of this process, for systemd (sd_notify): "READY=1",
// "STOPPING=1". Nothing where no service manager asked for it ($NOTIFY_SOCKET).
//
// The protocol is one datagram; linking libsystemd for it would make every installation need it.
//
// Threads: thread-safe. Errors: none; a manager that is not told notices.
#pragma once

#include <string_view>

namespace slipstream {

void tell_service_manager(std::string_view state);

}  // namespace slipstream
