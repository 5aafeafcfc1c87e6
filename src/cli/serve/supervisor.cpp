#include "cli/serve/supervisor.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/format.h"
#include "base/log.h"
#include "base/service_manager.h"

namespace slipstream::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kVariable = "SLIPSTREAM_SUPERVISOR";  // the parent's pid and n_restarts
constexpr int kReadySignal = SIGUSR1;                       // sent by the child
constexpr int kListenerFd = 3;                              // the first descriptor of LISTEN_FDS

// A child that lives this long did not crash for the same reason as the one before.
constexpr std::chrono::seconds kSteady(60);
constexpr std::chrono::seconds kPauseMax(30);

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

// The exit status as shells report it.
int exit_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

class Supervisor {
 public:
  Supervisor(UniqueFd listener, char** argv) : listener_(std::move(listener)), argv_(argv) {}

  int run() {
    const sigset_t heard = set_of({SIGCHLD, kReadySignal, SIGTERM, SIGINT, SIGHUP});
    sigprocmask(SIG_BLOCK, &heard, nullptr);
    start();
    while (true) {
      siginfo_t info{};
      const int signal = wait_for(heard, info);
      if (signal == SIGCHLD) {
        if (const std::optional<int> end = reap()) return *end;
      } else if (signal == kReadySignal) {
        if (info.si_pid == child_) take_ready();
      } else if (signal == SIGHUP) {
        if (child_ > 0) kill(child_, SIGHUP);
      } else if (signal > 0) {
        stop(signal);
        if (child_ == 0) return 0;
      } else if (child_ == 0 && Clock::now() >= start_at_) {
        start();
      }
    }
  }

 private:
  // Returns a signal, or -1 if it may be time to start the child.
  [[nodiscard]] int wait_for(const sigset_t& heard, siginfo_t& info) const {
    if (child_ > 0) return sigwaitinfo(&heard, &info);
    const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::max(start_at_ - Clock::now(), Clock::duration::zero()));
    const timespec time{.tv_sec = rest.count() / 1'000'000'000,
                        .tv_nsec = rest.count() % 1'000'000'000};
    return sigtimedwait(&heard, &info, &time);
  }

  void start() {
    is_ready_ = false;
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) become_server(parent);
    if (pid < 0) {
      log::error("supervisor.start", {{"error", std::strerror(errno)}});
      return pause();
    }
    child_ = pid;
    log::info("supervisor.start", {{"pid", child_}, {"n_restarts", n_restarts_}});
  }

  // Runs in the child, which has only this thread.
  [[noreturn]] void become_server(pid_t parent) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // the parent has already ended
    setpgid(0, 0);                      // only the parent gets Ctrl-C, and passes it on
    // Signals that arrive before the server waits for them stay pending.
    const sigset_t kept = set_of({SIGTERM, SIGINT, SIGHUP});
    sigprocmask(SIG_SETMASK, &kept, nullptr);
    if (listener_.get() == kListenerFd) {
      fcntl(kListenerFd, F_SETFD, 0);
    } else {
      dup2(listener_.get(), kListenerFd);
    }
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv(kVariable, format_text("{} {}", parent, n_restarts_).c_str(), 1);
    unsetenv("NOTIFY_SOCKET");  // the service manager listens to the parent
    execv("/proc/self/exe", argv_);
    log::error("supervisor.exec", {{"error", std::strerror(errno)}});
    _exit(1);
  }

  void take_ready() {
    is_ready_ = true;
    ready_at_ = Clock::now();
    if (!std::exchange(has_been_ready_, true)) tell_service_manager("READY=1");
  }

  void stop(int signal) {
    if (!std::exchange(is_stopping_, true)) tell_service_manager("STOPPING=1");
    listener_.reset();  // new clients should connect to another server
    if (child_ > 0) kill(child_, signal);
  }

  // Reaps the child and any other process: the first process of a container inherits all orphans.
  // Returns the exit status if the supervisor should end.
  std::optional<int> reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid != child_) continue;
      child_ = 0;
      if (const std::optional<int> end = outcome(status)) return end;
    }
    return std::nullopt;
  }

  std::optional<int> outcome(int status) {
    if (exit_status(status) == 0 || is_stopping_ || !has_been_ready_) return exit_status(status);
    if (WIFSIGNALED(status)) {
      log::error("supervisor.crash", {{"signal", strsignal(WTERMSIG(status))}});
    } else {
      log::error("supervisor.crash", {{"status", WEXITSTATUS(status)}});
    }
    ++n_restarts_;
    pause();
    return std::nullopt;
  }

  // Sets the pause before the next start: none, then 1 s, 2 s, 4 s...
  void pause() {
    const bool was_steady = is_ready_ && Clock::now() - ready_at_ >= kSteady;
    n_short_lives_ = was_steady ? 0 : n_short_lives_ + 1;
    const int n_doublings = std::min(n_short_lives_ - 2, 10);
    const std::chrono::seconds time =
        n_doublings < 0 ? std::chrono::seconds(0)
                        : std::min(std::chrono::seconds(1 << n_doublings), kPauseMax);
    if (time.count() > 0) log::warn("supervisor.pause", {{"seconds", time.count()}});
    start_at_ = Clock::now() + time;
  }

  UniqueFd listener_;
  char** const argv_;
  pid_t child_ = 0;  // 0: there is none
  int n_restarts_ = 0;
  int n_short_lives_ = 0;  // in a row
  bool is_ready_ = false;  // whether the child is
  bool has_been_ready_ = false;
  bool is_stopping_ = false;
  Clock::time_point ready_at_;
  Clock::time_point start_at_;
};

}  // namespace

int supervise(UniqueFd listener, char** argv) {
  return Supervisor(std::move(listener), argv).run();
}

std::optional<int> n_restarts_by_supervisor() {
  const char* value = std::getenv(kVariable);
  if (value == nullptr) return std::nullopt;
  const std::string_view text(value);
  const std::size_t space = text.find(' ');
  // A grandchild inherits the variable too.
  if (space == text.npos || text.substr(0, space) != std::to_string(getppid())) return std::nullopt;
  int n = 0;
  std::from_chars(text.data() + space + 1, text.data() + text.size(), n);
  return n;
}

void tell_supervisor() {
  if (n_restarts_by_supervisor()) kill(getppid(), kReadySignal);
}

}  // namespace slipstream::serve
