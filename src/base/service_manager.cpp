#include "base/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/unique_fd.h"

namespace slipstream {

void tell_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr) return;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::size_t n_path = std::strlen(path);
  if (n_path == 0 || n_path >= sizeof(address.sun_path)) return;
  std::memcpy(address.sun_path, path, n_path);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // an abstract name
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  (void)::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + n_path));
}

}  // namespace slipstream
