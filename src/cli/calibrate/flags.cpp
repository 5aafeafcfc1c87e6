#include <CLI/CLI.hpp>

#include "bench/calibrate/probe.h"
#include "cli/calibrate/calibrate.h"
#include "cli/depth.h"
#include "cli/model_flags.h"

namespace slipstream::calibrate {

Command::Command(CLI::App& app) {
  Options& work = options_.work;
  calibrate_ = app.add_subcommand(
      "calibrate", "Find the smallest KV scheme that a model tolerates, for --kv auto");
  add_model_argument(*calibrate_, work.model)->required();
  calibrate_
      ->add_option("--budget", work.budget,
                   "Mean KL divergence from f16 that the scheme may have, in nats; the default is "
                   "what eval calls fine")
      ->check(CLI::Range(1e-6, 10.0))
      ->capture_default_str();
  calibrate_->add_flag(
      "--attend", work.finds_attend,
      "Find out, too, how few tokens a query has to read (attend=N in a scheme), to "
      "the deepest --depth; --kv auto then uses that for contexts up to this depth");
  calibrate_->add_option("--text", work.text, "A text for the model to read (default: built in)")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  take_depths(
      *calibrate_
           ->add_option(
               "--depth", work.depths,
               "Tokens of a chunk, and of a text with needles, such as 512,4k; layers are measured "
               "at the first (default: 512,1024, with --attend 512,8k, as far as the model goes)")
           ->delimiter(','),
      16);
  calibrate_
      ->add_option("--chunks", work.n_chunks,
                   "Chunks of the text at each depth, at most; layers are measured on half of "
                   "them")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  calibrate_
      ->add_option("--needle-texts", work.n_needle_texts,
                   "Texts with needles of each kind at each depth and position")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  calibrate_
      ->add_option("--layers-together", work.n_layers_together,
                   "Layers that are measured together and get the same bits (0: as many as make 8 "
                   "groups)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  calibrate_
      ->add_option("--prompts", work.prompts,
                   "on: our own kernels read prompts, off: stock's, auto: what is faster here")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
  calibrate_->add_option("-t,--threads", work.n_threads, "Threads (0: one per core)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  calibrate_
      ->add_option("--out", options_.out,
                   "Where the profile goes (default: where --kv auto looks for it)")
      ->type_name("FILE");
  calibrate_
      ->add_option("--plugin", work.plugin,
                   "Use this libggml-turbo.so instead of the program's own")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  probe_ = app.add_subcommand("calibrate-probe", "")->group("");  // an empty group hides it
}

std::optional<int> Command::run() const {
  if (calibrate_->parsed()) return calibrate::run(options_);
  if (probe_->parsed()) return answer_as_probe();
  return std::nullopt;
}

}  // namespace slipstream::calibrate
