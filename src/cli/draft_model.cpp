#include "cli/draft_model.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "cli/hub/find_model.h"
#include "engine/speculation/model_drafts.h"
#include "engine/speculation/mtp_layer.h"

namespace slipstream {
namespace {

// A batch learns a few tokens, or has one for each sequence.
int n_step_tokens(int n_sequences) { return std::max(ModelDrafts::kLearnedMax, n_sequences); }

std::unexpected<Error> named(const Error& error) {
  return fail(error.code, format_text("--draft-model: {}", error.message));
}

}  // namespace

Result<std::optional<DraftPlan>> plan_draft(const DraftWish& wish, int n_context, int n_sequences,
                                            std::uint64_t available_bytes) {
  if (wish.model.empty() && wish.kv != DraftWish().kv) {
    return fail(Code::kInvalidArgument, "--draft-kv is of the model that --draft-model names");
  }
  if (wish.model.empty()) return std::nullopt;
  const Result<std::filesystem::path> path = find_model(wish.model);
  if (!path) return named(path.error());
  // Its prompts are read by stock's kernels: trying our own would take longer than they save.
  Result<KvPlan> kv = plan_kv(*path, {.scheme = wish.kv},
                              {.shape = {.n_ctx = n_context,
                                         .n_sequences_max = n_sequences,
                                         .n_ubatch = n_step_tokens(n_sequences),
                                         .n_threads = 1}},
                              {.available_bytes = available_bytes}, {.prompts = "off"});
  if (!kv) return named(kv.error());
  return DraftPlan{.path = *path, .kv = std::move(*kv), .n_sequences = n_sequences};
}

std::uint64_t bytes_of(const std::optional<DraftPlan>& plan) {
  return plan ? plan->kv.total_bytes : 0;
}

Result<std::optional<Model>> load_draft(const std::optional<DraftPlan>& plan, int n_threads,
                                        std::function<bool(float)> on_progress) {
  if (!plan) return std::nullopt;
  Result<Model> model = Model::load({.path = plan->path,
                                     .kv = plan->kv.scheme,
                                     .plugin = plan->kv.plugin,
                                     .key_profile = plan->kv.key_profile,
                                     .n_cells = plan->kv.n_context,
                                     .n_sequences_max = plan->n_sequences,
                                     .n_step_tokens_max = n_step_tokens(plan->n_sequences),
                                     .n_threads = n_threads,
                                     .on_progress = std::move(on_progress)});
  if (!model) return named(model.error());
  return std::move(*model);
}

Result<bool> plan_mtp(const DraftWish& wish, bool speculates, const std::filesystem::path& model,
                      bool is_spread) {
  if (!speculates || wish.mtp == "off") return false;
  const auto usable = [&]() -> Result<void> {
    if (!wish.model.empty()) return fail(Code::kInvalidArgument, "--draft-model guesses instead");
    if (is_spread) return fail(Code::kUnsupported, "with --rpc there are no drafts by MTP");
    return check_mtp_layer(model);
  }();
  if (usable) return true;
  if (wish.mtp == "on") {
    return fail(usable.error().code, format_text("--mtp on: {}", usable.error().message));
  }
  log::info("engine.mtp", {{"used", "no"}, {"why", usable.error().message}});
  return false;
}

}  // namespace slipstream
