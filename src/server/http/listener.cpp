#include "server/http/listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdlib>
#include <string_view>

#include "base/format.h"

namespace slipstream {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr int kFirstInheritedFd = 3;  // fixed by the protocol

bool is_listening(int fd) {
  int accepts = 0;
  socklen_t n_bytes = sizeof(accepts);
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &n_bytes) == 0 && accepts != 0;
}

}  // namespace

Result<UniqueFd> open_listener(const std::string& host, std::uint16_t port) {
  boost::system::error_code error;
  const asio::ip::address address = asio::ip::make_address(host, error);
  if (error) {
    return fail(
        Code::kInvalidArgument,
        format_text("{} is no address: name an IP address, such as 127.0.0.1 or 0.0.0.0", host));
  }
  const tcp::endpoint endpoint(address, port);
  const auto what = format_text("cannot listen on {}:{}", host, port);
  asio::io_context io;
  tcp::acceptor acceptor(io);
  if (acceptor.open(endpoint.protocol(), error); error) return fail_errno(error.value(), what);
  if (acceptor.set_option(tcp::acceptor::reuse_address(true), error); error) {
    return fail_errno(error.value(), what);
  }
  if (acceptor.bind(endpoint, error); error) return fail_errno(error.value(), what);
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error) {
    return fail_errno(error.value(), what);
  }
  UniqueFd fd(acceptor.release(error));
  if (error) return fail_errno(error.value(), what);
  fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  return fd;
}

Result<UniqueFd> inherited_listener() {
  const char* pid = std::getenv("LISTEN_PID");
  const char* n_fds = std::getenv("LISTEN_FDS");
  if (pid == nullptr || n_fds == nullptr || pid != std::to_string(getpid())) return UniqueFd();
  const bool is_one = std::string_view(n_fds) == "1";
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) unsetenv(name);
  if (!is_one || !is_listening(kFirstInheritedFd)) {
    return fail(Code::kInvalidArgument,
                "LISTEN_FDS must hand over exactly one socket that listens: one ListenStream=");
  }
  fcntl(kFirstInheritedFd, F_SETFD, FD_CLOEXEC);
  return UniqueFd(kFirstInheritedFd);
}

}  // namespace slipstream
