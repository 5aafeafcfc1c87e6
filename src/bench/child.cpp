#include "bench/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/format.h"
#include "base/unique_fd.h"

extern char** environ;  // posix_spawn's, which no header declares

namespace slipstream::bench {
namespace {

using nlohmann::json;

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  return Pipe{.read_end = UniqueFd(ends[0]), .write_end = UniqueFd(ends[1])};
}

Result<pid_t> spawn(const ChildProgram& program, const Pipe& input, const Pipe& output) {
  std::vector<char*> arguments;
  for (const std::string& word : program.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));  // posix_spawn does not write to them
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.read_end.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, program.log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail_errno(error, format_text("cannot start {}", program.command[0]));
  return pid;
}

std::string end_of_log(const std::filesystem::path& log) {
  constexpr std::size_t kBytes = 600;
  std::ifstream file(log, std::ios::binary);
  std::string text{std::istreambuf_iterator(file), std::istreambuf_iterator<char>()};
  if (text.size() > kBytes) text = "..." + text.substr(text.size() - kBytes);
  return text;
}

// What the child wrote last. Lines that are not JSON are a library's own chatter.
std::optional<json> read_answer(int fd, const std::function<void(double)>& on_progress) {
  const std::unique_ptr<FILE, int (*)(FILE*)> stream(fdopen(dup(fd), "r"), std::fclose);
  std::optional<json> answer;
  char* line = nullptr;
  std::size_t n_allocated = 0;
  while (getline(&line, &n_allocated, stream.get()) > 0) {
    const json said = json::parse(line, nullptr, false);
    if (!said.is_object()) continue;
    if (said.contains("progress")) {
      on_progress(said["progress"].get<double>());
    } else {
      answer = said;
    }
  }
  std::free(line);
  return answer;
}

Result<json> judge(const ChildProgram& program, const std::optional<json>& answer, int status) {
  if (answer && answer->contains("result")) return answer->at("result");
  if (answer && answer->contains("error")) {
    return fail(Code::kUnsupported, answer->at("error").get<std::string>());
  }
  const std::string how = WIFSIGNALED(status)
                              ? format_text("was killed by signal {} ({})", WTERMSIG(status),
                                            strsignal(WTERMSIG(status)))
                              : format_text("ended with {}", WEXITSTATUS(status));
  return fail(Code::kUnsupported,
              format_text("the process {} without an answer; the end of {}:\n{}", how,
                          program.log.string(), end_of_log(program.log)));
}

}  // namespace

Result<json> ask_child(const ChildProgram& program, const json& task,
                       const std::function<void(double)>& on_progress) {
  Result<Pipe> input = make_pipe();
  if (!input) return std::unexpected(input.error());
  Result<Pipe> output = make_pipe();
  if (!output) return std::unexpected(output.error());
  // Before the child is there: a task is smaller than a pipe, so that this never waits, and nobody
  // can close the other end meanwhile.
  constexpr std::size_t kPipeBytes = std::size_t{64} << 10;  // Linux's default
  const std::string line = task.dump() + "\n";
  SLIP_CHECK(line.size() <= kPipeBytes, "a task that no pipe holds");
  if (write(input->write_end.get(), line.data(), line.size()) != std::ssize(line)) {
    return fail_errno(errno, "cannot write a task");
  }
  input->write_end.reset();
  const Result<pid_t> pid = spawn(program, *input, *output);
  if (!pid) return std::unexpected(pid.error());
  input->read_end.reset();
  output->write_end.reset();

  const std::optional<json> answer = read_answer(output->read_end.get(), on_progress);
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) continue;
  return judge(program, answer, status);
}

int answer_parent(const ChildWork& work) {
  std::string line;
  std::getline(std::cin, line);
  const auto say = [](const json& what) {
    std::printf("%s\n", what.dump().c_str());
    std::fflush(stdout);
  };
  auto said = std::chrono::steady_clock::now();
  const auto on_progress = [&](double done) {
    const auto now = std::chrono::steady_clock::now();
    if (now - said < std::chrono::milliseconds(200)) return;
    said = now;
    say({{"progress", done}});
  };
  try {
    const Result<json> result = work(json::parse(line), on_progress);
    say(result ? json{{"result", *result}} : json{{"error", result.error().message}});
    return result ? 0 : 1;
  } catch (const json::exception& error) {
    say({{"error", format_text("this is not a task: {}", error.what())}});
    return 1;
  }
}

}  // namespace slipstream::bench
