#include "bench/quality/work/sandbox.h"

#include <unistd.h>

#include <array>

#include "base/format.h"
#include "base/sandbox.h"
#include "bench/child.h"
#include "bench/quality/work/refused_calls.h"

namespace slipstream::quality {
namespace {

// Not looked for in PATH: what runs programs of a model is the system's own.
constexpr const char* kPython = "/usr/bin/python3";
constexpr const char* kLimiter = "/usr/bin/prlimit";

struct Needed {
  const char* path;
  const char* package;
};
constexpr std::array<Needed, 3> kNeeded = {
    {{kBubblewrap, "bubblewrap"}, {kPython, "python3"}, {kLimiter, "util-linux"}}};

std::vector<std::string> python_command(const RunLimits& limits, bool has_user_namespace) {
  std::vector<std::string> command = sandbox_command(has_user_namespace);
  const auto add = [&](std::initializer_list<const char*> words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  add({"--remount-ro", "/"});
  add({"--seccomp", "0"});  // from standard input, which the program then does not have
  add({kLimiter, "--core=0", "--fsize=0", "--nofile=32"});
  command.push_back(format_text("--cpu={}", limits.n_cpu_seconds));
  command.push_back(format_text("--as={}", limits.memory_bytes));
  // -I, -S: nothing of the user's, and no packages beside Python's own.
  add({kPython, "-I", "-S", "-c"});
  return command;
}

}  // namespace

Result<Sandbox> Sandbox::open(const RunLimits& limits) {
  for (const Needed& needed : kNeeded) {
    if (access(needed.path, X_OK) == 0) continue;
    return fail(Code::kUnsupported,
                format_text("code of a model is run in a sandbox only, and {} is missing: install "
                            "the package {}, or leave code out of --tasks",
                            needed.path, needed.package));
  }
  std::string complaint;
  for (const bool has_user_namespace : {true, false}) {
    std::vector<std::string> command = python_command(limits, has_user_namespace);
    const Result<Run> tried = Sandbox({}, command).run("print(6 * 7)");
    if (!tried) return std::unexpected(tried.error());
    if (tried->ended && tried->out == "42\n") return Sandbox(limits, std::move(command));
    if (complaint.empty()) complaint = tried->complaint;
  }
  return fail(Code::kUnsupported,
              format_text("code of a model is run in a sandbox only, and there can be none here: "
                          "{}. Allow user namespaces, or leave code out of --tasks",
                          complaint));
}

Result<Sandbox::Run> Sandbox::run(const std::string& program) const {
  if (program.contains('\0')) return Run{};  // an argument ends there
  std::vector<std::string> command = command_;
  command.push_back(program);
  const Result<ChildEnd> end = bench::run_child_until_signal(
      command, refused_calls(), [](std::string_view /*line*/) { return false; },
      {.time = limits_.time,
       .n_out_bytes = limits_.n_out_bytes,
       .n_error_bytes = limits_.n_out_bytes});
  if (!end && end.error().code == Code::kOverloaded) return Run{};  // it was stopped
  if (!end) return std::unexpected(end.error());
  return Run{.ended = end->status == 0, .out = end->out, .complaint = end->complaint};
}

}  // namespace slipstream::quality
