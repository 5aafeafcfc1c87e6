// Whatever arrives on a connection: the server answers in HTTP or closes it, and lives. Input: what
// the client sends before it has nothing more to say.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "harness.h"
#include "server/http/http_server.h"

namespace {

using slipstream::HttpExchange;
using slipstream::HttpServer;

boost::asio::awaitable<void> echo(HttpExchange& exchange) {
  (void)co_await exchange.reply({.body = std::string(exchange.path()) + exchange.request().body()});
}

HttpServer& server() {
  static const std::unique_ptr<HttpServer> kServer = [] {
    slipstream::log::set_level(slipstream::log::Level::kError);
    slipstream::HttpOptions options{.port = 0, .n_threads = 1};
    options.limits.http_body_bytes_max = 1 << 16;
    auto listening =
        HttpServer::listen(options, echo, [](int, std::string_view) { return std::string("{}"); });
    SLIP_CHECK(listening.has_value(), "no port");
    return std::move(*listening);
  }();
  return *kServer;
}

slipstream::UniqueFd connect_to(std::uint16_t port) {
  slipstream::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(port),
                      .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                      .sin_zero = {}};
  const int connected =
      ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  SLIP_CHECK(connected == 0, "the server takes no connections any more");
  // Closed with a reset: thousands of connections a second would use up the ports otherwise.
  const linger reset{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  return client;
}

}  // namespace

int fuzz_one(const std::uint8_t* data, std::size_t n_bytes) {
  const slipstream::UniqueFd client = connect_to(server().port());
  (void)::send(client.get(), data, n_bytes, MSG_NOSIGNAL);  // it may have closed already
  (void)::shutdown(client.get(), SHUT_WR);
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::recv(client.get(), buffer, sizeof(buffer), 0)) > 0;) {
    answer.append(buffer, static_cast<std::size_t>(n));
  }
  SLIP_CHECK(answer.empty() || answer.starts_with("HTTP/1."), "an answer that is not HTTP");
  return 0;
}
