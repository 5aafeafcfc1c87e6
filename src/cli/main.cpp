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
#include "cli/run/run.h"
#include "cli/version.h"

namespace {

constexpr int kUsageError = 2;

constexpr const char* kFooter =
    "Examples:\n"
    "  slipstream doctor               is this machine ready, and what would make it faster?\n"
    "  slipstream doctor --dir /data   the same, for models kept in /data\n"
    "  slipstream run MODEL.gguf -p \"Once upon a time\"\n"
    "  slipstream run MODEL.gguf -f book.txt --kv turbo4 --ctx 32768 -n 500\n";

CLI::App* add_run(CLI::App& app, slipstream::run::Options& options) {
  CLI::App* run = app.add_subcommand(
      "run", "Continue a prompt with a model, without a server; the text goes to standard output");
  run->add_option("model", options.model, "A GGUF file")->required()->type_name("MODEL");
  CLI::Option* prompt = run->add_option("-p,--prompt", options.prompt, "What to continue");
  CLI::Option* file = run->add_option("-f,--file", options.prompt_file,
                                      "The same, from a file; - is standard input");
  prompt->excludes(file);
  run->add_option("--kv", options.kv,
                  "How the KV cache is kept: turbo8v4, turbo8, turbo4, turbo3, f16, q8_0, q4_0, or "
                  "auto, which takes what fits in memory")
      ->capture_default_str();
  run->add_option("-c,--ctx", options.n_context,
                  "Tokens of prompt and answer together (0: the model's own, at most 8192)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  run->add_option("-n,--max-tokens", options.n_tokens_max, "Tokens to generate at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  run->add_option("--temp", options.temperature,
                  "Temperature; 0 always takes the most probable token")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  run->add_option("--seed", options.seed, "For the same text again");
  run->add_option("-t,--threads", options.n_threads, "Threads (0: one per core)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  CLI::Option* disk =
      run->add_option("--kv-disk", options.kv_disk,
                      "Keep what was computed of the prompt in this directory, and do not compute "
                      "it again the next time")
          ->type_name("DIR");
  run->add_option("--kv-disk-bytes", options.kv_disk_bytes,
                  "What --kv-disk may take, such as 20GiB; what was used longest ago goes first")
      ->transform(CLI::AsSizeValue(false))
      ->needs(disk)
      ->default_str("8GiB");
  return run;
}

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

  slipstream::run::Options run_options;
  const CLI::App* run_command = add_run(app, run_options);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;  // --help and --version arrive here too
  }
  if (doctor->parsed()) return slipstream::doctor::run(doctor_options);
  if (run_command->parsed()) return slipstream::run::run(run_options);
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
