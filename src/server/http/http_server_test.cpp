#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

// A client that says exactly what it is told to.
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
  // Until the server closes the connection, or the text ends with this.
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

std::unique_ptr<HttpServer> serve(HttpServer::Handler handler) {
  HttpOptions options;
  options.port = 0;
  auto server = HttpServer::listen(options, std::move(handler), [](int status, std::string_view) {
    return std::to_string(status);
  });
  return server ? std::move(*server) : nullptr;
}

bool comes_true(const auto& condition) {
  const auto end = steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

TEST(HttpServer, WhoIsRefusedIsToldBeforeTheBodyIsRead) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    (void)co_await exchange.reply({.status = 401, .body = "who are you?"});
  });
  for (const std::string_view expect : {"", "Expect: 100-continue\r\n"}) {
    const RawClient client(server->port());
    client.send(format_text("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n{}\r\n",
                            kLimits.http_body_bytes_max, expect));
    const std::string answer = client.read("who are you?");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 401")) << answer;
    EXPECT_TRUE(answer.contains("Connection: close")) << answer;
  }
  // One that sends all before it reads sees it, too.
  const RawClient client(server->port());
  client.send(format_text("POST /x HTTP/1.1\r\nContent-Length: {}\r\n\r\n", 8 << 20));
  client.send(std::string(8 << 20, 'x'));
  EXPECT_TRUE(client.read().contains("who are you?"));
}

TEST(HttpServer, AHandlerThatWantsTheBodyReadsIt) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    const auto problem = co_await exchange.read_body();
    (void)co_await exchange.reply(
        {.status = problem ? problem->status : 200, .body = "<" + exchange.request().body() + ">"});
  });
  const RawClient client(server->port());
  for (int i = 0; i < 2; ++i) {
    client.send("POST /x HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_TRUE(client.read("\r\n\r\n").starts_with("HTTP/1.1 100"));
    client.send("body");
    EXPECT_TRUE(client.read("<body>").starts_with("HTTP/1.1 200")) << "and the connection is kept";
  }
  const RawClient large(server->port());
  large.send(format_text("POST /x HTTP/1.1\r\nContent-Length: {}\r\n\r\n",
                         kLimits.http_body_bytes_max + 1));
  const std::string answer = large.read();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413") && answer.contains("Connection: close")) << answer;
}

TEST(HttpServer, HeadHasNoBodyAndOldClientsGetNoChunks) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    if (exchange.path() == "/whole") {
      (void)co_await exchange.reply({.body = "0123456789"});
      co_return;
    }
    (void)co_await exchange.begin_stream({});
    (void)co_await exchange.send("one");
    (void)co_await exchange.send("two");
    (void)co_await exchange.end_stream();
  });
  const RawClient client(server->port());
  client.send("HEAD /whole HTTP/1.1\r\n\r\nGET /whole HTTP/1.1\r\n\r\n");
  const std::string both = client.read("0123456789");
  EXPECT_TRUE(both.contains("\r\n\r\nHTTP/1.1 200")) << "nothing stands between them: " << both;
  EXPECT_TRUE(both.contains("Content-Length: 10"));

  const RawClient old(server->port());
  old.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string stream = old.read();  // to the end of the connection
  EXPECT_TRUE(stream.ends_with("\r\n\r\nonetwo")) << stream;
  EXPECT_FALSE(stream.contains("chunked") || stream.contains("keep-alive")) << stream;
}

TEST(HttpServer, AClientThatLeavesIsSeenWhateverItSentBefore) {
  std::atomic<int> n_waiting = 0;
  std::atomic<int> n_left = 0;
  const auto server = serve([&](HttpExchange& exchange) -> asio::awaitable<void> {
    const auto never = std::make_shared<Signal>(exchange.executor());
    ++n_waiting;
    if (!co_await exchange.wait(*never)) ++n_left;
  });
  int n_clients = 0;
  for (const std::size_t n_extra : {std::size_t{0}, std::size_t{1}, std::size_t{64} << 10}) {
    RawClient client(server->port());
    client.send("GET /x HTTP/1.1\r\n\r\n");
    ++n_clients;
    ASSERT_TRUE(comes_true([&] { return n_waiting == n_clients; }));
    client.send(std::string(n_extra, 'x'));
    client.close();
    EXPECT_TRUE(comes_true([&] { return n_left == n_clients; })) << n_extra;
  }
  // More than it may send ahead: cut off, though it stays.
  const RawClient greedy(server->port());
  greedy.send("GET /x HTTP/1.1\r\n\r\n" + std::string(kLimits.http_ahead_bytes_max + 4096, 'x'));
  EXPECT_TRUE(comes_true([&] { return n_left == n_clients + 1; }));
}

TEST(HttpServer, WhatAHandlerThrowsEndsItsRequestOnly) {
  const auto server = serve([](HttpExchange& exchange) -> asio::awaitable<void> {
    if (exchange.path() == "/number") throw 5;  // NOLINT(hicpp-exception-baseclass)
    if (exchange.path() == "/memory") throw std::bad_alloc();
    (void)co_await exchange.reply({.body = "fine"});
  });
  const RawClient client(server->port());
  for (const std::string_view path : {"/number", "/memory"}) {
    client.send(format_text("GET {} HTTP/1.1\r\n\r\n", path));
    EXPECT_TRUE(client.read("500").starts_with("HTTP/1.1 500")) << path;
  }
  client.send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(client.read("fine").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(comes_true([&] { return server->n_exchanges() == 0; }));
  EXPECT_TRUE(server->drain(std::chrono::milliseconds(500)));
}

}  // namespace
}  // namespace slipstream
