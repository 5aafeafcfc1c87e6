#include "engine/rpc/rpc_host.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <ranges>
#include <span>

#include "base/format.h"
#include "base/unique_fd.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;

// ggml-rpc.h: RPC_CMD_HELLO "must be always 14". Its size in bytes, and 24 of what the client can
// do: nothing but TCP.
constexpr std::size_t kCapsBytes = 24;
constexpr std::array<std::byte, 1 + 8 + kCapsBytes> kHello = {std::byte{14}, std::byte{kCapsBytes}};

class Waiting {
 public:
  Waiting(std::chrono::milliseconds time_max, const std::function<bool()>& is_given_up)
      : end_(Clock::now() + time_max), is_given_up_(is_given_up) {}

  // kOverloaded if the time is up before the descriptor is ready.
  [[nodiscard]] Result<void> until(int fd, short events) const {
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
      if (left.count() <= 0) return fail(Code::kOverloaded, "no answer");
      if (is_given_up_ && is_given_up_()) return fail(Code::kCancelled, "given up");
      pollfd waited{.fd = fd, .events = events, .revents = 0};
      // is_given_up() is asked at least so often.
      const int n_ms = static_cast<int>(std::min<std::int64_t>(left.count(), 200));
      if (::poll(&waited, 1, n_ms) > 0) return {};
    }
  }

 private:
  Clock::time_point end_;
  const std::function<bool()>& is_given_up_;
};

std::unexpected<Error> unreachable(const RpcHost& host, std::string_view why) {
  return fail(Code::kIo,
              format_text("{} cannot be reached ({}): start ggml-rpc-server there, with -H and an "
                          "address that this machine reaches, or leave the host out of --rpc",
                          host.name, why));
}

Result<UniqueFd> connect_to(const RpcHost& host, const sockaddr_storage& address,
                            const Waiting& waiting) {
  UniqueFd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail_errno(errno, "cannot open a socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(sockaddr_in)) == 0) {
    return fd;
  }
  if (errno != EINPROGRESS) return unreachable(host, std::strerror(errno));
  if (const Result<void> done = waiting.until(fd.get(), POLLOUT); !done) {
    if (done.error().code == Code::kCancelled) return std::unexpected(done.error());
    return unreachable(host, done.error().message);
  }
  int error = 0;
  socklen_t n_bytes = sizeof(error);
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &n_bytes);
  if (error != 0) return unreachable(host, std::strerror(error));
  return fd;
}

// Reads the greeting's answer to its end: a client that leaves before could end a server that does
// not ignore SIGPIPE.
Result<void> read_answer(const RpcHost& host, int fd, const Waiting& waiting) {
  constexpr std::uint64_t kAnswerBytesMax = 256;
  std::uint64_t n_wanted = sizeof(std::uint64_t);
  std::array<std::byte, sizeof(std::uint64_t) + kAnswerBytesMax> answer{};
  std::uint64_t n_read = 0;
  const auto foreign = [&host] {
    return fail(Code::kUnsupported,
                format_text("{} does not answer as a ggml-rpc-server of this program's ggml: "
                            "install the same version of libggml0 on all machines",
                            host.name));
  };
  while (n_read < n_wanted) {
    if (const Result<void> ready = waiting.until(fd, POLLIN); !ready) {
      if (ready.error().code == Code::kCancelled) return ready;
      return fail(Code::kOverloaded,
                  format_text("{} accepts connections and does not answer: a ggml-rpc-server "
                              "serves one program at a time",
                              host.name));
    }
    const ssize_t n = ::recv(fd, &answer[n_read], n_wanted - n_read, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0 && n_read == 0) {
      return fail(Code::kIo,
                  format_text("{} closes the connection: a tunnel without a ggml-rpc-server behind "
                              "it, or one of another version of ggml",
                              host.name));
    }
    if (n <= 0) return foreign();
    n_read += static_cast<std::uint64_t>(n);
    if (n_read == sizeof(std::uint64_t)) {
      std::uint64_t n_bytes = 0;
      std::memcpy(&n_bytes, answer.data(), sizeof(n_bytes));
      if (n_bytes == 0 || n_bytes > kAnswerBytesMax) return foreign();
      n_wanted += n_bytes;
    }
  }
  return {};
}

}  // namespace

Result<std::vector<RpcHost>> parse_rpc_hosts(std::string_view list) {
  std::vector<RpcHost> hosts;
  for (const auto part : std::views::split(list, ',')) {
    const std::string_view name(part);
    const std::size_t colon = name.find(':');
    RpcHost host{.name = std::string(name), .host = std::string(name.substr(0, colon))};
    const std::string_view digits =
        colon == name.npos ? std::string_view() : name.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), host.port);
    if (host.host.empty() || host.port == 0 || error != std::errc() ||
        end != digits.data() + digits.size()) {
      return fail(Code::kInvalidArgument,
                  format_text("--rpc takes HOST:PORT,HOST:PORT..., with names or addresses of "
                              "IPv4, and '{}' is not that",
                              name));
    }
    if (std::ranges::contains(hosts, host.name, &RpcHost::name)) {
      return fail(Code::kInvalidArgument, format_text("--rpc names {} twice", name));
    }
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) return fail(Code::kInvalidArgument, "--rpc names no host");
  if (hosts.size() > kRpcHostsMax) {
    return fail(Code::kInvalidArgument,
                format_text("--rpc names {} hosts; {} are possible", hosts.size(), kRpcHostsMax));
  }
  return hosts;
}

Result<std::vector<sockaddr_storage>> addresses_of(const RpcHost& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(host.host.c_str(), std::to_string(host.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  if (error != 0 || found == nullptr) {
    return fail(Code::kNotFound,
                format_text("{} has no address: {}", host.host, ::gai_strerror(error)));
  }
  std::vector<sockaddr_storage> addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::memcpy(&addresses.emplace_back(), one->ai_addr, one->ai_addrlen);
  }
  return addresses;
}

Result<void> greet(const RpcHost& host, std::chrono::milliseconds time_max,
                   const std::function<bool()>& is_given_up) {
  const Waiting waiting(time_max, is_given_up);
  const Result<std::vector<sockaddr_storage>> addresses = addresses_of(host);
  if (!addresses) return std::unexpected(addresses.error());
  // Whoever is there accepts at once, busy or not. Tried anew, it is found sooner than by waiting.
  constexpr std::chrono::milliseconds kConnectTimeMax(3000);
  const Result<UniqueFd> fd = connect_to(host, addresses->front(),
                                         Waiting(std::min(time_max, kConnectTimeMax), is_given_up));
  if (!fd) return std::unexpected(fd.error());
  // A new connection has room for so little.
  if (::send(fd->get(), kHello.data(), kHello.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kHello.size())) {
    return unreachable(host, std::strerror(errno));
  }
  return read_answer(host, fd->get(), waiting);
}

}  // namespace slipstream
