// For tests: a client that sends exactly what it is told to, and a server for it.
//
// Threads: thread-compatible. Errors: what does not arrive is empty or false.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/unique_fd.h"
#include "server/http/http_server.h"

namespace slipstream {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const sockaddr_in address{.sin_family = AF_INET,
                              .sin_port = htons(port),
                              .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                              .sin_zero = {}};
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    is_open_ =
        ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  [[nodiscard]] bool is_open() const { return is_open_; }
  void send(std::string_view text) const {
    (void)::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Reads until the server closes the connection or the text ends with `end`.
  [[nodiscard]] std::string read(std::string_view end = "\n\n\n") const {
    std::string text;
    char buffer[4096];
    while (!text.ends_with(end)) {
      const auto n = ::recv(fd_.get(), buffer, sizeof(buffer), 0);
      if (n <= 0) break;
      text.append(buffer, static_cast<std::size_t>(n));
    }
    return text;
  }
  void close() { fd_ = UniqueFd(); }

 private:
  UniqueFd fd_;
  bool is_open_ = false;
};

// Uses a port chosen by the system.
inline std::unique_ptr<HttpServer> serve(HttpServer::Handler handler, HttpOptions options = {}) {
  options.port = 0;
  auto server = HttpServer::listen(options, std::move(handler), [](int status, std::string_view) {
    return std::to_string(status);
  });
  return server ? std::move(*server) : nullptr;
}

bool comes_true(const auto& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace slipstream
