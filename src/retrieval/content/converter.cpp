#include "retrieval/content/converter.h"

#include <unistd.h>

#include <array>
#include <vector>

#include "base/child.h"
#include "base/format.h"
#include "base/log.h"
#include "base/sandbox.h"
#include "retrieval/retrieval_limits.h"

namespace slipstream {
namespace {

constexpr auto kConverters = std::to_array<Converter>({
    {.ending = ".pdf",
     .program = "/usr/bin/pdftotext",
     .package = "poppler-utils",
     .arguments = "-q -enc UTF-8 - -"},
    {.ending = ".docx", .program = "/usr/bin/docx2txt", .package = "docx2txt", .arguments = ""},
    {.ending = ".odt",
     .program = "/usr/bin/odt2txt",
     .package = "odt2txt",
     .arguments = "--encoding=UTF-8 --width=-1 /dev/stdin"},
    {.ending = ".ods",
     .program = "/usr/bin/odt2txt",
     .package = "odt2txt",
     .arguments = "--encoding=UTF-8 --width=-1 /dev/stdin"},
    {.ending = ".odp",
     .program = "/usr/bin/odt2txt",
     .package = "odt2txt",
     .arguments = "--encoding=UTF-8 --width=-1 /dev/stdin"},
});
constexpr const char* kLimiter = "/usr/bin/prlimit";

Result<ChildEnd> run(const std::vector<std::string>& command, std::string_view input) {
  return run_child(command, input, [](std::string_view /*line*/) { return false; },
                   {.time = kRetrievalLimits.convert_time_max,
                    .n_out_bytes = kRetrievalLimits.file_bytes_max,
                    .n_error_bytes = std::size_t{1} << 20});
}

// What a converter may have: a folder in memory for its own files, and standard input as a file.
std::vector<std::string> confined(bool has_user_namespace) {
  std::vector<std::string> command = sandbox_command(has_user_namespace);
  command.insert(command.end(),
                 {"--ro-bind-try", "/etc/alternatives", "/etc/alternatives", "--symlink", "usr/bin",
                  "/bin", "--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev", "--setenv", "PATH",
                  "/usr/bin", "--setenv", "LC_ALL", "C.UTF-8"});
  return command;
}

// The way in which converters can be confined here; empty: none.
std::vector<std::string> find_confinement() {
  if (::access(kBubblewrap, X_OK) == 0) {
    for (const bool has_user_namespace : {true, false}) {
      std::vector<std::string> command = confined(has_user_namespace);
      std::vector<std::string> trial = command;
      trial.emplace_back("/usr/bin/true");
      const Result<ChildEnd> end = run(trial, "");
      if (end && end->status == 0) return command;
    }
  }
  log::info("index.converters", {{"confined", "by limits only"}, {"do", "install bubblewrap"}});
  return {};
}

}  // namespace

const Converter* find_converter(std::string_view name) {
  for (const Converter& converter : kConverters) {
    if (name.ends_with(converter.ending)) return &converter;
  }
  return nullptr;
}

Result<std::string> convert(const Converter& converter, std::string_view document) {
  if (::access(converter.program, X_OK) != 0) {
    return fail(Code::kUnsupported, format_text("needs the package {}", converter.package));
  }
  static const std::vector<std::string> confinement = find_confinement();
  std::vector<std::string> command = confinement;
  command.insert(command.end(), {kLimiter, "--core=0", "--nofile=64",
                                 format_text("--cpu={}", kRetrievalLimits.convert_time_max.count()),
                                 format_text("--as={}", kRetrievalLimits.convert_memory_bytes),
                                 converter.program});
  std::string_view arguments = converter.arguments;
  while (!arguments.empty()) {
    const std::size_t end = std::min(arguments.find(' '), arguments.size());
    command.emplace_back(arguments.substr(0, end));
    arguments.remove_prefix(std::min(end + 1, arguments.size()));
  }
  Result<ChildEnd> end = run(command, document);
  if (!end) {
    if (end.error().code != Code::kOverloaded) return std::unexpected(end.error());
    return fail(Code::kUnsupported, "its text is too long, or takes too long to find");
  }
  if (end->status != 0) return fail(Code::kUnsupported, "not a document that can be read");
  return std::move(end->out);
}

}  // namespace slipstream
