// slipstream: the command line. Parses flags, calls the command, returns its exit status:
// 0 done, 1 the command could not do it, 2 the command line was wrong.
#include <ggml.h>
#include <llama.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <format>
#include <string>

#include "cli/doctor/doctor.h"
#include "cli/version.h"

namespace {

constexpr int kUsageError = 2;

constexpr const char* kFooter =
    "Examples:\n"
    "  slipstream doctor               is this machine ready, and what would make it faster?\n"
    "  slipstream doctor --dir /data   the same, for models kept in /data\n";

int run(int argc, char** argv) {
  CLI::App app("Long contexts and big models on the machine you own, behind stock llama.cpp.",
               "slipstream");
  app.footer(kFooter);
  app.get_formatter()->enable_footer_formatting(false);  // keep the examples' columns
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", [] {
    return std::format("slipstream {} (llama.cpp {}, ggml {})", slipstream::kVersion,
                       llama_version(), ggml_version());
  });

  slipstream::doctor::Options doctor_options;
  CLI::App* doctor = app.add_subcommand(
      "doctor", "Say what this machine has for running models, and what to do about what it lacks");
  doctor->add_option("--dir", doctor_options.model_dir, "Where the models are, or will be")
      ->type_name("DIR")
      ->capture_default_str();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;  // --help and --version arrive here too
  }
  if (doctor->parsed()) return slipstream::doctor::run(doctor_options);
  std::fputs(app.help().c_str(), stderr);
  return kUsageError;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    // Rooms do not throw; this is the last line of defence against a library that does.
    std::fprintf(stderr, "slipstream: %s\n", error.what());
    return 1;
  }
}
