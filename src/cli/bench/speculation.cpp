#include "cli/bench/speculation.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "bench/quality/plain_text.h"
#include "bench/speed/speculation_trial.h"
#include "cli/draft_model.h"
#include "cli/hub/find_model.h"
#include "cli/kv_choice.h"
#include "cli/progress.h"
#include "cli/scheme_list.h"
#include "engine/speculation/draft_model.h"
#include "engine/speculation/mtp_head.h"
#include "engine/text/vocabulary.h"

namespace slipstream::bench {
namespace {

// Null without a draft model and without MTP.
Result<std::unique_ptr<BatchDrafter>> load_drafter(const Options& options,
                                                   const std::optional<DraftPlan>& plan,
                                                   const Model& model, int n_sequences) {
  if (model.has_mtp()) return MtpHead::create(model, n_sequences);
  Result<std::optional<Model>> loaded = load_draft(plan, options.n_threads);
  if (!loaded) return std::unexpected(loaded.error());
  if (!*loaded) return nullptr;
  return DraftModel::create(std::move(**loaded), model);
}

Result<std::vector<SpeculationFigures>> measure(const Options& options,
                                                const std::filesystem::path& path,
                                                const std::string& kv_name, SpeculationTask task,
                                                std::string& title) {
  const Result<std::uint64_t> available = available_memory();
  if (!available) return std::unexpected(available.error());
  const int n_together = std::ranges::max(task.n_sequences);
  const Result<std::optional<DraftPlan>> draft =
      plan_draft(options.draft, task.n_cells(), n_together, *available);
  if (!draft) return std::unexpected(draft.error());
  const std::uint64_t left = *available - std::min(*available, bytes_of(*draft));
  const Result<KvPlan> kv = plan_kv(path, {.scheme = kv_name},
                                    {.shape = {.n_ctx = task.n_cells(),
                                               .n_sequences_max = task.n_sequence_ids(),
                                               .n_threads = 1,
                                               .n_outputs_max = task.n_outputs_max(),
                                               .has_drafts = true},
                                     .rope = options.rope},
                                    {.available_bytes = left}, {.prompts = options.prompts});
  if (!kv) return std::unexpected(kv.error());
  const Result<bool> has_mtp = plan_mtp(options.draft, true, path, false);
  if (!has_mtp) return std::unexpected(has_mtp.error());
  Result<Model> model = Model::load({.path = path,
                                     .kv = kv->scheme,
                                     .plugin = kv->plugin,
                                     .has_products = kv->has_products,
                                     .key_profile = kv->key_profile,
                                     .rope = options.rope,
                                     .n_cells = task.n_cells(),
                                     .n_sequences_max = task.n_sequence_ids(),
                                     .n_outputs_max = task.n_outputs_max(),
                                     .n_threads = options.n_threads,
                                     .has_mtp = *has_mtp,
                                     .on_progress = {}});
  if (!model) return std::unexpected(model.error());
  const Result<std::unique_ptr<BatchDrafter>> drafter =
      load_drafter(options, *draft, *model, n_together);
  if (!drafter) return std::unexpected(drafter.error());
  const Result<Vocabulary> vocabulary = Vocabulary::create(model->model());
  if (!vocabulary) return std::unexpected(vocabulary.error());
  const Result<std::string> text = quality::text_or_ours(options.text);
  if (!text) return std::unexpected(text.error());
  Result<std::vector<Token>> tokens = vocabulary->tokenize(*text, false, false);
  if (!tokens) return std::unexpected(tokens.error());
  if (tokens->empty()) return fail(Code::kInvalidArgument, "--text has no text");
  task.text = std::move(*tokens);
  title = format_text("{}, prompts of {} tokens, answers of {}, {} repeats in turns", kv->scheme,
                      task.n_prompt, task.n_tokens, task.n_repeats);
  if (*has_mtp) {
    title += format_text(", with MTP, right in {:.0f} %", 100 * task.draft_acceptance);
  }
  if (*draft) {
    title += format_text(", with drafts of {} in {}, right in {:.0f} %",
                         (*draft)->path.filename().string(), (*draft)->kv.scheme,
                         100 * task.draft_acceptance);
  }
  Progress progress(kv->scheme);
  return try_speculation(*model, task, [&](double done) { progress.show(done); }, drafter->get());
}

Result<void> try_run_speculation(const Options& options) {
  const Result<std::filesystem::path> path = find_model(options.model);
  if (!path) return std::unexpected(path.error());
  const SpeculationTask task{.text = {},
                             .n_sequences = options.n_sequences,
                             .n_prompt = options.n_prompt,
                             .n_tokens = options.n_tokens,
                             .n_repeats = options.n_repeats,
                             .draft_acceptance = options.draft_acceptance};
  std::string report = format_text("# Speculation with {}\n", path->filename().string());
  for (const std::string& kv : join_schemes(options.kv)) {
    std::string title;
    const Result<std::vector<SpeculationFigures>> figures =
        measure(options, *path, kv, task, title);
    if (!figures) return std::unexpected(figures.error());
    std::printf("%s\n%s", title.c_str(), speculation_table(*figures, false).c_str());
    report += format_text("\n{}\n\n{}", title, speculation_table(*figures, true));
  }
  const std::filesystem::path directory = options.directory.empty()
                                              ? format_text("bench-{}", path->stem().string())
                                              : options.directory;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::ofstream file(directory / "speculation.md");
  file << report;
  file.close();
  if (!file) {
    return fail(Code::kIo, format_text("cannot write into {}", directory.string()));
  }
  return {};
}

}  // namespace

int run_speculation(const Options& options) {
  log::set_level(log::Level::kWarn);  // a person reads the output
  const Result<void> done = try_run_speculation(options);
  if (done) return 0;
  std::fprintf(stderr, "slipstream bench: %s\n", done.error().message.c_str());
  return 1;
}

}  // namespace slipstream::bench
