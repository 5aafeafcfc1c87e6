#include "engine/rpc/rpc_watch.h"

#include <fcntl.h>
#include <ggml.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/format.h"

namespace slipstream {
namespace {

std::atomic<RpcWatch*> watch_of_process = nullptr;
std::atomic<bool> is_reported = false;

// After this long without a sign of life, a connection is closed: 5 s until the first probe, then
// three of them.
constexpr int kIdleSeconds = 5;
constexpr int kProbeSeconds = 2;
constexpr int kProbes = 3;
constexpr int kUnansweredMs = 1000 * (kIdleSeconds + kProbes * kProbeSeconds);

bool is_same(const sockaddr_storage& a, const sockaddr_storage& b) {
  const auto& first = reinterpret_cast<const sockaddr_in&>(a);
  const auto& second = reinterpret_cast<const sockaddr_in&>(b);
  return first.sin_family == AF_INET && second.sin_family == AF_INET &&
         first.sin_port == second.sin_port && first.sin_addr.s_addr == second.sin_addr.s_addr;
}

// Descriptors of this process, of which some may be closed by now.
std::vector<int> open_fds() {
  std::vector<int> fds;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    int fd = -1;
    if (std::from_chars(name.data(), name.data() + name.size(), fd).ec == std::errc()) {
      fds.push_back(fd);
    }
  }
  return fds;
}

std::vector<UniqueFd> connections_to(const RpcHost& host) {
  std::vector<UniqueFd> connections;
  const Result<std::vector<sockaddr_storage>> addresses = addresses_of(host);
  if (!addresses) return connections;
  for (const int fd : open_fds()) {
    sockaddr_storage peer{};
    socklen_t n_bytes = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &n_bytes) != 0) continue;
    if (std::ranges::none_of(*addresses, [&](const auto& one) { return is_same(one, peer); })) {
      continue;
    }
    if (UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); copy) {
      connections.push_back(std::move(copy));
    }
  }
  return connections;
}

void probe_when_idle(int fd) {
  const auto set = [fd](int level, int option, int value) {
    (void)::setsockopt(fd, level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnansweredMs);
}

}  // namespace

Result<std::unique_ptr<RpcWatch>> RpcWatch::start(std::span<const RpcHost> hosts, OnLost on_lost) {
  std::vector<Connection> connections;
  for (const RpcHost& host : hosts) {
    std::vector<UniqueFd> found = connections_to(host);
    if (found.empty()) return fail(Code::kIo, format_text("{} is gone", host.name));
    for (UniqueFd& fd : found) {
      probe_when_idle(fd.get());
      connections.push_back({.host = host.name, .fd = std::move(fd)});
    }
  }
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop) return fail_errno(errno, "cannot watch the hosts of --rpc");
  return std::unique_ptr<RpcWatch>(
      new RpcWatch(std::move(connections), std::move(stop), std::move(on_lost)));
}

RpcWatch::RpcWatch(std::vector<Connection> connections, UniqueFd stop, OnLost on_lost)
    : connections_(std::move(connections)), stop_(std::move(stop)), on_lost_(std::move(on_lost)) {
  SLIP_CHECK(watch_of_process.exchange(this) == nullptr, "a process has one watch");
  ggml_set_abort_callback(take_abort);
  thread_ = std::jthread([this] { run(); });
}

RpcWatch::~RpcWatch() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));
  thread_.join();
  ggml_set_abort_callback(nullptr);
  watch_of_process = nullptr;
}

void RpcWatch::run() {
  if (const std::string* host = find_closed(-1)) report(*host);
}

const std::string* RpcWatch::find_closed(int time_ms_max) {
  std::vector<pollfd> fds = {{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  for (const Connection& connection : connections_) {
    fds.push_back({.fd = connection.fd.get(), .events = POLLRDHUP, .revents = 0});
  }
  int n_ready = 0;
  do {
    n_ready = ::poll(fds.data(), fds.size(), time_ms_max);
  } while (n_ready < 0 && errno == EINTR);
  if (n_ready <= 0 || fds.front().revents != 0) return nullptr;
  const auto closed = std::ranges::find_if(
      fds, [](const pollfd& fd) { return (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0; });
  if (closed == fds.end()) return nullptr;
  return &connections_[static_cast<std::size_t>(closed - fds.begin()) - 1].host;
}

void RpcWatch::report(const std::string& host) {
  if (is_reported.exchange(true)) {
    while (true) ::pause();  // another thread ends the process
  }
  on_lost_(host);
}

// ggml is about to end the process. Where that is not because of a host, it is a bug like any other.
void RpcWatch::take_abort(const char* message) {
  RpcWatch* watch = watch_of_process;
  constexpr int kMomentMs = 100;  // the end of a connection may be seen here a little later
  const std::string* host = watch == nullptr ? nullptr : watch->find_closed(kMomentMs);
  if (host != nullptr) {
    watch->report(*host);
  } else if (watch != nullptr && std::string_view(message).contains("RPC server")) {
    watch->report("a host of --rpc");
  }
  (void)::write(STDERR_FILENO, message, std::strlen(message));
  (void)::write(STDERR_FILENO, "\n", 1);
}

}  // namespace slipstream
