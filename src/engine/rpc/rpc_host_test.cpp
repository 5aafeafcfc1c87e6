#include "engine/rpc/rpc_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/unique_fd.h"

namespace slipstream {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Listens on a port of the kernel's choice.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(fd_.get(), 1), 0);
    socklen_t n_bytes = sizeof(address);
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &n_bytes);
    port_ = ntohs(address.sin_port);
  }
  RpcHost host() const {
    return {.name = "127.0.0.1:" + std::to_string(port_), .host = "127.0.0.1", .port = port_};
  }
  // Reads what a client sends first, and answers.
  std::string answer_one(std::string_view answer) const {
    const UniqueFd client(::accept(fd_.get(), nullptr, nullptr));
    std::array<char, 33> greeting{};
    EXPECT_EQ(::recv(client.get(), greeting.data(), greeting.size(), MSG_WAITALL), 33);
    EXPECT_EQ(::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    return {greeting.begin(), greeting.end()};
  }
  void close() { fd_.reset(); }

 private:
  UniqueFd fd_;
  std::uint16_t port_ = 0;
};

TEST(RpcHost, ParsesTheFlag) {
  const Result<std::vector<RpcHost>> hosts = parse_rpc_hosts("10.0.0.2:50052,big.lan:1");
  ASSERT_TRUE(hosts) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 2U);
  EXPECT_EQ(hosts->at(0).name, "10.0.0.2:50052");
  EXPECT_EQ(hosts->at(1).host, "big.lan");
  EXPECT_EQ(hosts->at(1).port, 1);
}

TEST(RpcHost, RefusesWhatIsNone) {
  for (const char* wrong :
       {"", "a", "a:", ":1", "a:0", "a:65536", "a:1x", "a:-1", "a:1,", "::1:1", "a:1,b:2,a:1"}) {
    const Result<std::vector<RpcHost>> hosts = parse_rpc_hosts(wrong);
    ASSERT_FALSE(hosts) << wrong;
    EXPECT_EQ(hosts.error().code, Code::kInvalidArgument);
  }
}

TEST(RpcHost, RefusesMoreThanLibllamaHasDevices) {
  std::string list = "host0:1";
  for (int i = 1; i < 15; ++i) list += ",host" + std::to_string(i) + ":1";
  EXPECT_TRUE(parse_rpc_hosts(list));
  EXPECT_FALSE(parse_rpc_hosts(list + ",host15:1"));
}

TEST(RpcHost, AGreetingIsAnswered) {
  const Listener listener;
  std::string greeting;
  std::thread server(
      [&] { greeting = listener.answer_one(std::string("\x04\0\0\0\0\0\0\0abcd", 12)); });
  const Result<void> greeted = greet(listener.host(), 5s);
  server.join();
  EXPECT_TRUE(greeted) << greeted.error().message;
  // 14 and 24 are fixed by ggml's protocol.
  EXPECT_EQ(greeting, std::string("\x0e\x18\0\0\0\0\0\0\0", 9) + std::string(24, '\0'));
}

TEST(RpcHost, SaysThatNobodyListens) {
  Listener listener;
  const RpcHost host = listener.host();
  listener.close();
  const Result<void> greeted = greet(host, 5s);
  ASSERT_FALSE(greeted);
  EXPECT_EQ(greeted.error().code, Code::kIo);
  EXPECT_THAT(greeted.error().message, HasSubstr("Connection refused"));
  EXPECT_THAT(greeted.error().message, HasSubstr("start ggml-rpc-server there"));
}

TEST(RpcHost, ABusyHostIsWaitedForOnlySoLong) {
  const Listener listener;  // its kernel accepts, and it does not answer
  const Result<void> greeted = greet(listener.host(), 300ms);
  ASSERT_FALSE(greeted);
  EXPECT_EQ(greeted.error().code, Code::kOverloaded);
  EXPECT_THAT(greeted.error().message, HasSubstr("one program at a time"));
}

TEST(RpcHost, TheWaitCanBeGivenUp) {
  const Listener listener;
  const Result<void> greeted = greet(listener.host(), 60s, [] { return true; });
  ASSERT_FALSE(greeted);
  EXPECT_EQ(greeted.error().code, Code::kCancelled);
}

TEST(RpcHost, ATunnelWithoutAServerIsSaidToBeOne) {
  const Listener listener;
  std::thread server([&] { (void)listener.answer_one(""); });
  const Result<void> greeted = greet(listener.host(), 5s);
  server.join();
  ASSERT_FALSE(greeted);
  EXPECT_EQ(greeted.error().code, Code::kIo);
  EXPECT_THAT(greeted.error().message, HasSubstr("closes the connection"));
}

TEST(RpcHost, ForeignAnswersAreRefused) {
  for (const std::string& answer :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(8, '\0'),
        std::string("\x08\0\0\0\0\0\0\0abcd", 12)}) {
    const Listener listener;
    std::thread server([&] { (void)listener.answer_one(answer); });
    const Result<void> greeted = greet(listener.host(), 5s);
    server.join();
    ASSERT_FALSE(greeted) << answer;
    EXPECT_EQ(greeted.error().code, Code::kUnsupported);
    EXPECT_THAT(greeted.error().message, HasSubstr("same version of libggml0"));
  }
}

}  // namespace
}  // namespace slipstream
