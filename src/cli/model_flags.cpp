#include "cli/model_flags.h"

#include <CLI/CLI.hpp>

namespace slipstream {

CLI::Option* add_model_argument(CLI::App& command, std::string& model) {
  return command
      .add_option("model", model, "A GGUF file, or org/repo:quant of one that is installed")
      ->type_name("MODEL");
}

void add_yes_flag(CLI::App& command, bool& is_sure) {
  command.add_flag("-y,--yes", is_sure,
                   "Pull MODEL without asking, if it is org/repo:quant and not installed");
}

void add_kv_memory_options(CLI::App& command, std::uint64_t& n_bytes, std::string& directory) {
  CLI::Option* memory =
      command
          .add_option("--kv-memory", n_bytes,
                      "Memory for the codes of a KV cache of which a part is read, such as 6GiB; "
                      "the others are kept in a file while the process runs (default: all in "
                      "memory)")
          ->transform(CLI::AsSizeValue(false));
  command
      .add_option("--kv-memory-dir", directory, "The directory of that file (default: /var/tmp)")
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR")
      ->needs(memory);
}

void add_model_options(CLI::App& command, KvWish& kv, int& n_context, int& n_threads) {
  command
      .add_option("--kv", kv.scheme,
                  "How the KV cache is stored: turbo8v4, turbo8, turbo4, turbo3, f16, q8_0, q4_0, "
                  "or auto, which takes what calibrate chose, or else what fits in memory; "
                  "turbo4,attend=4096 reads the 4,096 tokens that matter most for each new one")
      ->capture_default_str();
  command
      .add_option("--kv-profile", kv.profile,
                  "A profile of calibrate (default: the one that it wrote for the model)")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  command.add_flag("--kv-force", kv.is_forced, "Use --kv even if calibrate found it broken");
  add_kv_memory_options(command, kv.memory_bytes, kv.memory_directory);
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

void add_rope_options(CLI::App& command, RopeScaling& rope) {
  command
      .add_option("--rope-scaling", rope.type,
                  "How positions are scaled for a context beyond the trained one (default: as the "
                  "model says)")
      ->check(CLI::IsMember({"none", "linear", "yarn"}));
  CLI::Option* scale =
      command
          .add_option_function<float>(
              "--rope-scale", [&rope](float factor) { rope.freq_scale = 1 / factor; },
              "By which factor the context grows, such as 4")
          ->check(CLI::Range(0.001, 1000.0));
  command
      .add_option("--rope-freq-scale", rope.freq_scale, "The same as a scale of frequencies: 0.25")
      ->check(CLI::Range(0.001, 1000.0))
      ->excludes(scale);
  command
      .add_option("--rope-freq-base", rope.freq_base,
                  "The base of the frequencies (default: the model's)")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--yarn-orig-ctx", rope.yarn_orig_ctx,
                  "YaRN: the context that the model was trained for (default: as the model says)")
      ->check(CLI::Range(1, 1 << 24));
  const auto add_number = [&](const char* name, float& number, const char* what) {
    command.add_option(name, number, what)->check(CLI::NonNegativeNumber);
  };
  add_number("--yarn-ext-factor", rope.yarn_ext_factor,
             "YaRN: how much is extrapolated; 0 interpolates all (default: 1 with yarn)");
  add_number("--yarn-attn-factor", rope.yarn_attn_factor,
             "YaRN: the magnitude of attention (default: the model's)");
  add_number(
      "--yarn-beta-slow", rope.yarn_beta_slow,
      "YaRN: rotations below which a frequency is interpolated (default: the model's, or 1)");
  add_number("--yarn-beta-fast", rope.yarn_beta_fast,
             "YaRN: rotations above which it is extrapolated (default: the model's, or 32)");
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

void add_draft_options(CLI::App& command, DraftWish& draft) {
  constexpr const char* kAbout =
      "A small model with the same vocabulary, which guesses too; what it takes is measured, and "
      "it is asked where it pays (also -md, as in llama-server)";
  command.add_option("--draft-model", draft.model, kAbout)->type_name("FILE");
  command.allow_non_standard_option_names();
  command.add_option("--model-draft,-md", draft.model, kAbout)->group("");  // not in --help
  command
      .add_option("--draft-kv", draft.kv, "How the KV cache of --draft-model is stored, as --kv")
      ->capture_default_str();
  command
      .add_option(
          "--mtp", draft.mtp,
          "Have the model's own layer for it guess, where no draft model does and the model "
          "has one (multi-token prediction). auto: if that is possible, otherwise the log says why")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
}

void add_speculation_options(CLI::App& command, std::string& speculate, DraftWish& draft) {
  const CLI::Option* asked =
      command
          .add_option("--speculate", speculate,
                      "Guess what repeats the prompt or the answer, and verify several tokens in a "
                      "step; answers stay the same. auto: where that is measured to be faster, the "
                      "default with --draft-model and --mtp on; always; off")
          ->check(CLI::IsMember({"auto", "always", "off"}))
          ->capture_default_str();
  add_draft_options(command, draft);
  command.parse_complete_callback([asked, &speculate, &draft] {
    if (draft.model.empty() && draft.mtp != "on") return;
    if (asked->count() == 0) speculate = "auto";
    if (speculate == "off") {
      throw CLI::ValidationError(draft.model.empty() ? "--mtp" : "--draft-model",
                                 "is never asked with --speculate off");
    }
  });
}

Speculates speculates_of(const std::string& word) {
  if (word == "off") return Speculates::kNever;
  return word == "always" ? Speculates::kAlways : Speculates::kWhereItPays;
}

void add_projector_option(CLI::App& command, std::string& projector) {
  constexpr const char* kAbout =
      "The projector of a model with vision: chats may have images then, PNG and JPEG as "
      "data:image/png;base64,... (also -mm, as in llama-server)";
  command.add_option("--mmproj", projector, kAbout)->type_name("FILE")->check(CLI::ExistingFile);
  command.allow_non_standard_option_names();
  command.add_option("-mm", projector, kAbout)->check(CLI::ExistingFile)->group("");
}

void add_rpc_option(CLI::App& command, std::string& hosts) {
  command
      .add_option(
          "--rpc", hosts,
          "Machines that compute a part of the model's layers: where ggml-rpc-server "
          "listens on each, dealt by the memory that each has left; it has neither password "
          "nor encryption, so use a tunnel (docs/fleet.md)")
      ->type_name("HOST:PORT,...")
      // As of a variable that is not set: without hosts the model would be computed here.
      ->check([](const std::string& list) { return list.empty() ? "names no host" : ""; });
}

void add_disk_options(CLI::App& command, std::string& kv_disk, std::uint64_t& kv_disk_bytes) {
  CLI::Option* disk =
      command
          .add_option(
              "--kv-disk", kv_disk,
              "Keep computed prompts in this directory, and reuse them the next time; servers "
              "may share it")
          ->type_name("DIR");
  command
      .add_option("--kv-disk-bytes", kv_disk_bytes,
                  "The limit of --kv-disk, such as 20GiB; the least recently used is removed first")
      ->transform(CLI::AsSizeValue(false))
      ->needs(disk)
      ->default_str("8GiB");
}

}  // namespace slipstream
