#include "server/http/crash_notice.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/format.h"

namespace slipstream {
namespace {

enum Say : std::uint8_t { kNothing, kReply, kEvent, kChunkedEvent, kLine, kChunkedLine };

// There are more entries than connections. Descriptors with higher numbers get no notice.
std::array<std::atomic<Say>, 8192> says;
static_assert(std::atomic<Say>::is_always_lock_free, "a signal handler reads it");

constexpr std::array kDeadly = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
std::array<struct sigaction, kDeadly.size()> before;
std::array<std::string, 6> texts;  // indexed by Say
std::atomic<bool> is_dying = false;

void set(int fd, Say say) {
  if (fd >= 0 && static_cast<std::size_t>(fd) < says.size()) {
    says[static_cast<std::size_t>(fd)] = say;
  }
}

// A descriptor may belong to another file by now. That is not a socket, so send() does
// nothing to it.
void send_notices() {
  for (std::size_t fd = 0; fd < says.size(); ++fd) {
    const std::string& text = texts[says[fd]];
    if (text.empty()) continue;
    (void)::send(static_cast<int>(fd), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}

// Does only what is safe in a signal handler.
void die(int signal, siginfo_t* info, void* /*context*/) {
  if (is_dying.exchange(true)) {
    sleep(1);  // another thread sends them and then ends the process
  } else {
    send_notices();
  }
  for (std::size_t i = 0; i < kDeadly.size(); ++i) sigaction(kDeadly[i], &before[i], nullptr);
  // A faulting instruction faults again on return, so that a core dump shows it.
  if (info->si_code <= 0) (void)raise(signal);
}

std::string as_last_chunk(const std::string& text) {
  return format_text("{:x}\r\n{}\r\n0\r\n\r\n", text.size(), text);
}

}  // namespace

CrashNotice::CrashNotice(int fd) : fd_(fd) { set(fd_, kReply); }
void CrashNotice::say_nothing() const { set(fd_, kNothing); }
void CrashNotice::say_event(Stream stream, bool is_chunked) const {
  if (stream == Stream::kLines) {
    set(fd_, is_chunked ? kChunkedLine : kLine);
  } else {
    set(fd_, is_chunked ? kChunkedEvent : kEvent);
  }
}

void set_crash_notice(std::string_view message) {
  const std::string error = format_text(
      R"({{"error":{{"message":"{}","type":"server_error","param":null,"code":null}}}})", message);
  texts[kReply] = format_text(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
      "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
      error.size(), error);
  texts[kEvent] = format_text("data: {}\n\n", error);
  texts[kChunkedEvent] = as_last_chunk(texts[kEvent]);
  texts[kLine] = format_text("{{\"error\":\"{}\"}}\n", message);
  texts[kChunkedLine] = as_last_chunk(texts[kLine]);
}

void send_notices_on_crash() {
  set_crash_notice("The server ended unexpectedly: ask again");
  struct sigaction action{};
  action.sa_sigaction = die;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kDeadly.size(); ++i) sigaction(kDeadly[i], &action, &before[i]);
}

}  // namespace slipstream
