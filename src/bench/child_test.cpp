#include "bench/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace slipstream::bench {
namespace {

Result<ChildEnd> shell(const std::string& script, std::string_view input = "",
                       std::vector<std::string>* lines = nullptr) {
  return run_child_until_signal({"/bin/sh", "-c", script}, input, [&](std::string_view line) {
    if (!line.starts_with("progress")) return false;
    if (lines != nullptr) lines->emplace_back(line);
    return true;
  });
}

TEST(Child, ReadsItsInputAndGivesItsOutput) {
  const std::string input(300000, 'x');
  const Result<ChildEnd> end = shell("cat", input);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, 0);
  EXPECT_EQ(end->out, input);
}

TEST(Child, TellsProgressAndKeepsComplaints) {
  std::vector<std::string> lines;
  const auto end = shell("echo progress 1 >&2; echo oh no >&2; echo progress 2 >&2", "", &lines);
  ASSERT_TRUE(end);
  EXPECT_EQ(lines, (std::vector<std::string>{"progress 1", "progress 2"}));
  EXPECT_EQ(end->complaint, "oh no");
}

TEST(Child, AComplaintIsCutBetweenCharacters) {
  // The last 4096 bytes begin with the second byte of a character.
  const auto end = shell("i=0; while [ $i -lt 300 ]; do echo ääääääääää >&2; i=$((i+1)); done");
  ASSERT_TRUE(end);
  EXPECT_GT(end->complaint.size(), 4000U);
  EXPECT_EQ(end->complaint.substr(0, 3), "\nä");
  EXPECT_EQ(shell("printf 'caf\\351' >&2")->complaint, "caf");  // the last character is cut
}

TEST(Child, EndsIfItsParentHasEndedBefore) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    // The test's own end of the pipe is closed when this byte can no longer be written.
    ::signal(SIGPIPE, SIG_IGN);
    while (::write(STDERR_FILENO, "", 1) == 1) ::usleep(1000);
    die_with_parent();
    ::_exit(0);
  }
  ::close(ends[0]);
  ::close(ends[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(Child, SaysHowItEnded) {
  EXPECT_EQ(shell("exit 3")->status, 3);
  const Result<ChildEnd> killed = shell("kill -SEGV $$", "unread input");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->status, -1);
  EXPECT_EQ(killed->signal, SIGSEGV);
}

TEST(Child, ThatCannotBeStartedIsAnError) {
  EXPECT_FALSE(
      run_child_until_signal({"/nonexistent/program"}, "", [](std::string_view) { return false; }));
}

TEST(Child, IsEndedPastALimit) {
  const auto limited = [](const std::string& script, const ChildLimits& limits) {
    return run_child_until_signal(
        {"/bin/sh", "-c", script}, "", [](std::string_view) { return false; }, limits);
  };
  using std::chrono::milliseconds;
  const auto started = std::chrono::steady_clock::now();
  const auto slow = limited("sleep 60", {.time = milliseconds(50)});
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, Code::kOverloaded);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(30));
  const auto silent = limited("exec >&- 2>&-; sleep 60", {.time = milliseconds(50)});
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code, Code::kOverloaded);
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(30));
  const auto long_winded = limited("while :; do echo more; done", {.n_out_bytes = 1000});
  ASSERT_FALSE(long_winded);
  EXPECT_EQ(long_winded.error().code, Code::kOverloaded);
  const auto complaining = limited("while :; do echo no >&2; done", {.n_error_bytes = 1000});
  ASSERT_FALSE(complaining);
  EXPECT_EQ(complaining.error().code, Code::kOverloaded);
  EXPECT_TRUE(limited("echo done", {.time = std::chrono::minutes(1), .n_out_bytes = 1000}));
}

TEST(Child, GetsNoOtherOpenFile) {
  // Without O_CLOEXEC, as libraries do it; a number that the shell does not use itself.
  const int fd = ::fcntl(STDERR_FILENO, F_DUPFD, 200);
  ASSERT_GE(fd, 200);
  const auto end = shell("for fd in /proc/$$/fd/*; do echo ${fd##*/}; done");
  ::close(fd);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->out.contains("\n" + std::to_string(fd) + "\n")) << end->out;
}

TEST(Child, IsEndedWhenItsParentIsToldToStop) {
  const auto end = shell("kill -TERM $PPID; sleep 60");
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace slipstream::bench
