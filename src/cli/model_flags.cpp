#include "cli/model_flags.h"

#include <CLI/CLI.hpp>

namespace slipstream {

CLI::Option* add_model_argument(CLI::App& command, std::string& model) {
  return command
      .add_option("model", model, "A GGUF file, or org/repo:quant of one that is installed")
      ->type_name("MODEL");
}

void add_model_options(CLI::App& command, KvWish& kv, int& n_context, int& n_threads) {
  command
      .add_option("--kv", kv.scheme,
                  "How the KV cache is stored: turbo8v4, turbo8, turbo4, turbo3, f16, q8_0, q4_0, "
                  "or auto, which takes what calibrate chose, or else what fits in memory")
      ->capture_default_str();
  command
      .add_option("--kv-profile", kv.profile,
                  "A profile of calibrate (default: the one that it wrote for the model)")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  command.add_flag("--kv-force", kv.is_forced, "Use --kv even if calibrate found it broken");
  command
      .add_option(
          "-c,--ctx", n_context,
          "Tokens of all prompts and answers together (0: the model's own, or what fits into "
          "three quarters of the available memory)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("-t,--threads", n_threads, "Threads (0: one per core)")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
}

void add_weight_options(CLI::App& command, WeightWish& weights) {
  CLI::Option* streams =
      command.add_flag("--stream-experts", weights.streams_experts,
                       "Leave the experts of a mixture-of-experts model in its file, if they do "
                       "not fit into memory, and read those in use");
  command
      .add_option("--expert-cache", weights.expert_cache_bytes,
                  "Memory for the experts in use, such as 6GiB (default: what is left)")
      ->transform(CLI::AsSizeValue(false))
      ->needs(streams);
  command
      .add_option("--prompts", weights.prompts,
                  "on: our own kernels read prompts, off: stock's, auto: what is faster here")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
}

void add_disk_options(CLI::App& command, std::string& kv_disk, std::uint64_t& kv_disk_bytes) {
  CLI::Option* disk =
      command
          .add_option("--kv-disk", kv_disk,
                      "Keep computed prompts in this directory, and reuse them the next time")
          ->type_name("DIR");
  command
      .add_option("--kv-disk-bytes", kv_disk_bytes,
                  "The limit of --kv-disk, such as 20GiB; the least recently used is removed first")
      ->transform(CLI::AsSizeValue(false))
      ->needs(disk)
      ->default_str("8GiB");
}

}  // namespace slipstream
