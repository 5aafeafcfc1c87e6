#include <CLI/CLI.hpp>

#include "bench/quality/needles.h"
#include "bench/quality/suite.h"
#include "cli/depth.h"
#include "cli/eval/eval.h"
#include "cli/model_flags.h"

namespace slipstream::eval {
namespace {

void add_trials(CLI::App& command, quality::ArmOptions& arm) {
  command
      .add_option("--tasks", arm.tasks,
                  "What to measure: divergence, needles, tools, drift, arithmetic, facts, json "
                  "(default: all of these), and code, which runs what the model writes, in a "
                  "sandbox")
      ->delimiter(',')
      ->check(
          CLI::IsMember(std::vector<std::string>(quality::kTasks.begin(), quality::kTasks.end())));
  take_depths(*command
                   .add_option("--depth", arm.depths,
                               "Tokens of a chunk, and of a text with needles, such as 512,4k,32k "
                               "(default: 512,2048, as far as model and text go)")
                   ->delimiter(','),
              16);
  command.add_option("--chunks", arm.n_chunks, "Chunks of the text at each depth, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--needle-texts", arm.n_needle_texts,
                  "Texts with needles of each kind at each depth and position")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--needle-kinds", arm.needle_kinds,
                  "single, several, paraphrased, alike (default: all); single reads a text for "
                  "each question, the others share one")
      ->delimiter(',')
      ->check(CLI::IsMember(
          std::vector<std::string>(quality::kNeedleKinds.begin(), quality::kNeedleKinds.end())));
  command.add_option("--tool-calls", arm.n_tool_calls, "Questions that need a tool")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--drift-prompts", arm.n_drift_prompts, "Prompts that are continued")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--drift-tokens", arm.n_drift_tokens, "Tokens of each continuation")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--work-tasks", arm.n_work_tasks,
                  "Tasks of each: arithmetic, facts, json, code (of code 24 at most)")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

}  // namespace

Command::Command(CLI::App& app) {
  eval_ = app.add_subcommand("eval",
                             "Measure what a compressed KV cache costs in quality, against f16");
  add_model_argument(*eval_, options_.arm.model)->required();
  eval_->add_option("--kv", options_.schemes, "The schemes to compare with f16")
      ->delimiter(',')
      ->capture_default_str();
  eval_->add_option("--text", options_.arm.text, "A text for the model to read (default: built in)")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  add_trials(*eval_, options_.arm);
  eval_->add_option("-t,--threads", options_.arm.n_threads, "Threads (0: one per core)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  eval_
      ->add_option(
          "--out", options_.out,
          "Write quality.json, quality.csv and quality.md, with pictures, into this directory")
      ->type_name("DIR");
  eval_
      ->add_option("--fail-on", options_.fail_on,
                   "End with status 1 if a scheme has this verdict or a worse one")
      ->check(CLI::IsMember({"visible-loss", "broken"}));
  eval_
      ->add_option("--plugin", options_.plugin,
                   "Use this libggml-turbo.so instead of the program's own")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  arm_ = app.add_subcommand("eval-arm", "")->group("");  // an empty group hides it
}

std::optional<int> Command::run() const {
  if (eval_->parsed()) return eval(options_);
  if (arm_->parsed()) return quality::answer_as_arm();
  return std::nullopt;
}

}  // namespace slipstream::eval
