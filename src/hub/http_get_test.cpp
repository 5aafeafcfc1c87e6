#include "hub/http_get.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <new>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream::hub {
namespace {

// A server on this machine that answers one request.
class OneAnswer {
 public:
  OneAnswer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n_bytes = sizeof(address_);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address_), n_bytes), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address_), &n_bytes), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::jthread([this] { answer(); });
  }
  [[nodiscard]] std::string url() const {
    return format_text("http://127.0.0.1:{}/", ntohs(address_.sin_port));
  }

 private:
  void answer() const {
    const UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> request{};
    EXPECT_GT(::recv(client.get(), request.data(), request.size(), 0), 0);
    constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    EXPECT_EQ(::send(client.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(kAnswer.size()));
  }

  UniqueFd listener_;
  sockaddr_in address_{};
  std::jthread thread_;
};

HttpAnswer get(const HttpConnection::Taker& taker) {
  const OneAnswer server;
  HttpConnection connection;
  return connection.get({.url = server.url(), .token = "", .range = std::nullopt}, taker);
}

TEST(HttpGet, GivesWhatArrives) {
  std::string body;
  const HttpAnswer answer = get([&](const HttpAnswer&, std::span<const std::byte> bytes) {
    body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  });
  EXPECT_EQ(answer.failure, "");
  EXPECT_EQ(body, "hello");
}

// libcurl is C code: an exception that left its callback would end the process.
TEST(HttpGet, ATakerThatThrowsEndsTheTransferOnly) {
  EXPECT_EQ(get([](const auto&, auto) -> bool { throw std::bad_alloc(); }).failure,
            "not enough memory for what arrived");
  EXPECT_EQ(get([](const auto&, auto) -> bool { throw std::runtime_error("lost"); }).failure,
            "lost");
}

}  // namespace
}  // namespace slipstream::hub
