#include "base/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <limits>

#include "base/format.h"
#include "base/utf8.h"

namespace slipstream {
namespace {

constexpr std::size_t kComplaintBytesMax = 4096;

// A file instead of a pipe: writing to a child that dies early would raise SIGPIPE in the parent.
Result<UniqueFd> file_of(std::string_view text) {
  UniqueFd file(memfd_create("input", MFD_CLOEXEC));
  if (!file) return fail_errno(errno, "cannot keep a child's input");
  const auto written = write_exactly(file.get(), std::as_bytes(std::span(text)));
  if (!written) return std::unexpected(written.error());
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Splits text into lines as it arrives.
class Lines {
 public:
  Lines(const OnLine& on_line, std::string& complaint) : on_line_(on_line), complaint_(complaint) {}
  ~Lines() { take_line(); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void add(std::string_view text) {
    for (const char c : text) {
      if (c == '\n') {
        take_line();
      } else if (line_.size() < kComplaintBytesMax) {
        line_ += c;
      }
    }
  }

 private:
  void take_line() {
    if (!line_.empty() && !on_line_(line_)) {
      complaint_ += (complaint_.empty() ? "" : "\n") + line_;
      if (complaint_.size() > kComplaintBytesMax) {
        complaint_.erase(0, complaint_.size() - kComplaintBytesMax);
      }
    }
    line_.clear();
  }

  const OnLine& on_line_;
  std::string& complaint_;
  std::string line_;
};

// The complaint was cut at any byte, and a child that crashes may write anything.
std::string readable(std::string_view complaint) {
  const auto is_within = [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
  };
  while (!complaint.empty() && is_within(complaint.front())) complaint.remove_prefix(1);
  std::string text;
  append_repaired_utf8(text, complaint);
  return text;
}

// Returns false at the end of the input.
bool read_some(int fd, const std::function<void(std::string_view)>& take) {
  std::array<char, 16384> buffer;
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) take({buffer.data(), static_cast<std::size_t>(n)});
  return n > 0 || (n < 0 && errno == EINTR);
}

// For poll(): -1 without a limit, 0 if the time is over.
int milliseconds_left(std::chrono::milliseconds time,
                      std::chrono::steady_clock::time_point started) {
  if (time == std::chrono::milliseconds::max()) return -1;
  const auto spent = std::chrono::steady_clock::now() - started;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - spent).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

// A child may close its output and go on.
Result<void> await_end(pid_t pid, std::chrono::milliseconds time,
                       std::chrono::steady_clock::time_point started) {
  // glibc declares pidfd_open() for C only.
  const UniqueFd child(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!child) return fail_errno(errno, "cannot wait for a child");
  pollfd end{.fd = child.get(), .events = POLLIN, .revents = 0};
  int n_ready = -1;
  while (n_ready < 0) {
    n_ready = poll(&end, 1, milliseconds_left(time, started));
    if (n_ready < 0 && errno != EINTR) return fail_errno(errno, "cannot wait for a child");
  }
  if (n_ready == 1) return {};
  return fail(Code::kOverloaded, format_text("a child took more than {}", time));
}

// Reads both descriptors to their end.
Result<void> listen(int out, int error, ChildEnd& end, const OnLine& on_line,
                    const ChildLimits& limits, std::chrono::steady_clock::time_point started) {
  Lines lines(on_line, end.complaint);
  std::size_t n_error_bytes = 0;
  std::array<pollfd, 3> fds = {{{out, POLLIN, 0}, {error, POLLIN, 0}, {limits.stop_fd, POLLIN, 0}}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    const int left = milliseconds_left(limits.time, started);
    if (left == 0) {
      return fail(Code::kOverloaded, format_text("a child took more than {}", limits.time));
    }
    if (poll(fds.data(), fds.size(), left) < 0) {
      if (errno == EINTR) continue;
      return fail_errno(errno, "cannot wait for a child");
    }
    if (fds[2].revents != 0) return fail(Code::kCancelled, "a child was told to stop");
    if (fds[0].revents != 0 && !read_some(out, [&](std::string_view text) { end.out += text; })) {
      fds[0].fd = -1;  // poll() ignores it
    }
    if (fds[1].revents != 0 && !read_some(error, [&](std::string_view text) {
          lines.add(text);
          n_error_bytes += text.size();
        })) {
      fds[1].fd = -1;
    }
    if (end.out.size() > limits.n_out_bytes || n_error_bytes > limits.n_error_bytes) {
      return fail(Code::kOverloaded,
                  format_text("a child wrote more than {} bytes",
                              end.out.size() > limits.n_out_bytes ? limits.n_out_bytes
                                                                  : limits.n_error_bytes));
    }
  }
  return {};
}

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<pid_t> spawn_child(const std::vector<std::string>& command, int in, int out, int error) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, error, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // This process may ignore broken pipes, which a child would inherit.
  sigset_t usual;
  sigemptyset(&usual);
  sigaddset(&usual, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &usual);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int failure =
      posix_spawn(&pid, words.front().c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return fail_errno(failure, format_text("cannot start {}", command.front()));
  return pid;
}

Result<ChildEnd> run_child(const std::vector<std::string>& command, std::string_view input,
                           const OnLine& on_line, const ChildLimits& limits) {
  const Result<UniqueFd> in = file_of(input);
  if (!in) return std::unexpected(in.error());
  Result<Pipe> out = make_pipe();
  if (!out) return std::unexpected(out.error());
  Result<Pipe> error = make_pipe();
  if (!error) return std::unexpected(error.error());
  const Result<pid_t> pid = spawn_child(command, in->get(), out->write.get(), error->write.get());
  if (!pid) return std::unexpected(pid.error());
  out->write.reset();  // otherwise the end of the child's output is never seen
  error->write.reset();

  ChildEnd end;
  const auto started = std::chrono::steady_clock::now();
  Result<void> heard = listen(out->read.get(), error->read.get(), end, on_line, limits, started);
  if (heard) heard = await_end(*pid, limits.time, started);
  if (!heard) kill(*pid, SIGKILL);
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!heard) return std::unexpected(heard.error());
  end.complaint = readable(end.complaint);
  end.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

}  // namespace slipstream
