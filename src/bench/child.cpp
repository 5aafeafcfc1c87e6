#include "bench/child.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace slipstream::bench {
namespace {

// While this object lives, SIGINT and SIGTERM arrive at a descriptor.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    fd_ = UniqueFd(signalfd(-1, &signals_, SFD_CLOEXEC));
  }
  ~StopSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  // Consumes a signal that has arrived. Otherwise it would end this process when it is unblocked.
  void take() const {
    signalfd_siginfo signal{};
    (void)!read(fd_.get(), &signal, sizeof(signal));
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  UniqueFd fd_;
};

}  // namespace

Result<ChildEnd> run_child_until_signal(const std::vector<std::string>& command,
                                        std::string_view input, const OnLine& on_line,
                                        ChildLimits limits) {
  const StopSignals stop;
  limits.stop_fd = stop.fd();
  Result<ChildEnd> end = run_child(command, input, on_line, limits);
  if (!end && end.error().code == Code::kCancelled) {
    stop.take();
    return fail(Code::kCancelled, "stopped by a signal");
  }
  return end;
}

void die_with_parent() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A parent that had ended before is noticed by its pipe, which has nobody left to read it. Its id
  // would not do: in a container the parent itself may be process 1.
  pollfd complaints{.fd = STDERR_FILENO, .events = 0, .revents = 0};
  if (poll(&complaints, 1, 0) == 1 && (complaints.revents & POLLERR) != 0) (void)raise(SIGKILL);
}

}  // namespace slipstream::bench
