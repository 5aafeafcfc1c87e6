#include "cli/serve/models.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/log.h"
#include "base/memory_info.h"
#include "cli/hub/find_model.h"
#include "cli/model_flags.h"
#include "cli/rpc_plan.h"
#include "cli/serve/disk_folder.h"
#include "cli/serve/hub_library.h"
#include "cli/serve/lost_host.h"
#include "cli/version.h"
#include "engine/model/model_fingerprint.h"
#include "engine/speculation/draft_model.h"
#include "hub/gguf_choice.h"
#include "server/template/model_template.h"

namespace slipstream::serve {
namespace {

Result<std::vector<NamedModel>> named_models(const Options& options) {
  std::vector<NamedModel> models;
  if (!options.model.empty()) {
    const Result<std::filesystem::path> path = find_model(options.model);
    if (!path) return std::unexpected(path.error());
    models.push_back(
        {options.name.empty() ? path->stem().string() : options.name, path->string(), true});
  }
  for (const std::string& text : options.models) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == text.size()) {
      return fail(
          Code::kInvalidArgument,
          format_text("--model needs NAME=PATH beside another model, and '{}' is not that", text));
    }
    const Result<std::filesystem::path> path = find_model(text.substr(equals + 1));
    if (!path) return std::unexpected(path.error());
    models.push_back({text.substr(0, equals), path->string(), false});
  }
  for (std::size_t i = 0; i < models.size(); ++i) {
    const auto rest = std::span(models).subspan(i + 1);
    if (std::ranges::contains(rest, models[i].name, &NamedModel::name)) {
      return fail(Code::kInvalidArgument,
                  format_text("two models have the name '{}'", models[i].name));
    }
  }
  for (const std::string& name : options.pinned) {
    const auto model = std::ranges::find(models, name, &NamedModel::name);
    if (model == models.end()) {
      return fail(Code::kInvalidArgument, format_text("--pin {}: no model has that name", name));
    }
    model->is_pinned = true;
  }
  if (!options.rpc.empty() &&
      (models.size() != 1 || options.uses_hub || options.n_embedding_tokens_max > 0)) {
    return fail(Code::kInvalidArgument,
                "--rpc serves one model, and no embeddings: leave out --model, --hub and "
                "--embeddings, and name a GGUF file");
  }
  if (models.empty() && !options.uses_hub) {
    return fail(
        Code::kInvalidArgument,
        "no model: give a GGUF file, or --model NAME=PATH, or let clients choose and pull models "
        "with --hub, as they may without it where only this machine can ask");
  }
  return models;
}

// Its weights, in memory beside the model's. 0: there is none, or it cannot be read, as load() says.
std::uint64_t projector_bytes(const NamedModel& model) {
  if (model.projector.empty()) return 0;
  std::error_code error;
  const std::uint64_t n_bytes = std::filesystem::file_size(model.projector, error);
  return error ? 0 : n_bytes;
}

RunnerOptions runner_options(const Options& options) {
  return {.n_sequences_max = options.n_parallel,
          .n_prefixes_max = 128,
          .speculation = {.speculates = speculates_of(options.speculate)}};
}

Result<std::optional<DraftPlan>> plan_draft_of(const Options& options, std::uint64_t bytes_max) {
  const int n_asked = options.n_context > 0 ? options.n_context : std::numeric_limits<int>::max();
  return plan_draft(options.draft, DraftModel::n_cells_for(n_asked, options.n_parallel),
                    options.n_parallel, bytes_max);
}

// If the model's own template cannot be used, the log says why and only chats are unavailable.
std::unique_ptr<ChatTemplate> read_chat_template(const Engine& engine) {
  Result<ChatTemplate> created = chat_template_of(engine.model(), engine.vocabulary());
  if (created) return std::make_unique<ChatTemplate>(std::move(*created));
  log::warn("serve.chat_template", {{"error", created.error().message}});
  return nullptr;
}

// The same as long as model, cache, kernels and program are: what else answers could depend on. None where
// the file cannot be read: it is loaded already, and answers without one.
std::string system_fingerprint(const std::string& path, const KvPlan& kv, const RopeScaling& rope) {
  const std::string program =
      format_text("{} {}{}", kVersion, kv.scheme, kv.has_products ? " products" : "");
  const Result<Fingerprint> fingerprint =
      fingerprint_of(path, program, kv.key_profile, {.rope = rope, .n_ctx = kv.n_context});
  return fingerprint ? "fp_" + to_hex(*fingerprint).substr(0, 16) : "";
}

Result<std::unique_ptr<ServedModel>> load(const Options& options, const NamedModel& named,
                                          const KvPlan& kv, const std::stop_token& stop) {
  const RunnerOptions runner = runner_options(options);
  const auto goes_on = [&](float) { return !stop.stop_requested(); };
  const Result<bool> has_mtp =
      plan_mtp(named.draft ? options.draft : DraftWish{.mtp = options.draft.mtp},
               options.speculate != "off", named.path, !options.rpc.empty());
  if (!has_mtp) return std::unexpected(has_mtp.error());
  Spread spread = kv.spread;
  spread.on_lost = lose_host;
  Result<Model> model = Model::load({.path = named.path,
                                     .kv = kv.scheme,
                                     .plugin = kv.plugin,
                                     .experts = kv.experts,
                                     .kv_memory = kv.kv_memory,
                                     .has_products = kv.has_products,
                                     .spread = std::move(spread),
                                     .key_profile = kv.key_profile,
                                     .rope = options.rope,
                                     .n_cells = kv.n_context,
                                     .n_sequences_max = runner.n_sequence_ids(),
                                     .n_threads = options.n_threads,
                                     .has_mtp = *has_mtp,
                                     .on_progress = goes_on});
  if (!model) return std::unexpected(model.error());
  Result<std::optional<Model>> draft = load_draft(named.draft, options.n_threads, goes_on);
  if (!draft) return std::unexpected(draft.error());
  // A directory belongs to one model at a time.
  const std::filesystem::path disk = options.kv_disk;
  const bool shares_disk = !disk.empty() && (!options.models.empty() || options.uses_hub);
  Result<std::unique_ptr<Engine>> engine =
      Engine::start(std::move(*model),
                    {.runner = runner,
                     .n_requests_max = options.n_queue,
                     .disk_directory = shares_disk ? disk / disk_folder(named.name) : disk,
                     .disk_bytes_max = options.kv_disk_bytes,
                     .projector = named.projector,
                     .n_threads = options.n_threads},
                    std::move(*draft));
  if (!engine) return std::unexpected(engine.error());
  Result<std::unique_ptr<ServedReader>> reader = reader_beside(options, **engine);
  if (!reader) return std::unexpected(reader.error());
  log::info("serve.model", {{"name", named.name},
                            {"path", named.path},
                            {"kv", kv.scheme},
                            {"keys", kv.key_profile.empty() ? "-" : "fitted"},
                            {"expert_cache", kv.experts.empty() ? "-" : kv.experts},
                            {"prompts", kv.has_products ? "own" : "stock"},
                            {"speculate", (*engine)->speculates() ? options.speculate : "off"},
                            {"drafter", (*engine)->batch_drafter()},
                            {"images", (*engine)->vision() == nullptr ? "-" : named.projector},
                            {"context", (*engine)->n_context()},
                            {"why", kv.why_context}});
  if (named.draft && (*engine)->batch_drafter() == "draft model") {
    log::info("serve.draft_model", {{"name", named.name},
                                    {"path", named.draft->path.string()},
                                    {"kv", named.draft->kv.scheme},
                                    {"context", named.draft->kv.n_context}});
  }
  warn_if_beyond(named.name, kv);
  std::unique_ptr<ChatTemplate> chat_template = read_chat_template(**engine);
  const std::string file_name = std::filesystem::path(named.path).filename().string();
  return std::make_unique<ServedModel>(
      ServedModel{.name = named.name,
                  .engine = std::move(*engine),
                  .chat_template = std::move(chat_template),
                  .reader = std::move(*reader),
                  .file_name = file_name,
                  .system_fingerprint = system_fingerprint(named.path, kv, options.rope),
                  .kv_scheme = kv.scheme,
                  .kv_bytes = kv.kv_bytes,
                  .kv_f16_bytes = kv.kv_f16_bytes});
}

}  // namespace

int n_models(const Options& options) {
  const int n = static_cast<int>(options.models.size()) + (options.model.empty() ? 0 : 1);
  return options.uses_hub ? std::max(2, n + 1) : n;
}

ContextShape context_shape(const Options& options) {
  return {.n_ctx = options.n_context,
          .n_sequences_max = runner_options(options).n_sequence_ids(),
          .n_threads = 1,
          .has_drafts = options.speculate != "off"};
}

std::uint64_t ModelPlan::total_bytes() const {
  return std::visit([](const auto& plan) { return plan.total_bytes; }, how);
}

int ModelPlan::n_context() const {
  if (const auto* reading = std::get_if<ReadingPlan>(&how)) return reading->n_tokens_max;
  return std::get<KvPlan>(how).n_context;
}

std::string ModelPlan::kv() const {
  const auto* writing = std::get_if<KvPlan>(&how);
  return writing == nullptr ? "" : writing->scheme;
}

Result<ModelPlan> plan_model(const Options& options, const NamedModel& model,
                             std::uint64_t bytes_max) {
  Result<std::optional<ReadingPlan>> reading = plan_reading(options, model.path, bytes_max);
  if (!reading) return std::unexpected(reading.error());
  if (*reading) return ModelPlan{std::move(**reading)};
  WeightWish weights = options.weights;
  weights.n_threads = options.n_threads;
  const std::uint64_t beside = bytes_of(model.draft) + projector_bytes(model);
  const std::uint64_t left = bytes_max - std::min(bytes_max, beside);
  return plan_over_hosts(options.rpc, model.path, options.kv,
                         {.shape = context_shape(options), .rope = options.rope},
                         {.available_bytes = left, .n_models = n_models(options)}, weights)
      .transform([](KvPlan&& plan) { return ModelPlan{std::move(plan)}; });
}

PooledModel pooled_model(const Options& options, const NamedModel& model, const ModelPlan& plan) {
  std::error_code error;
  const std::uint64_t n_bytes = std::filesystem::file_size(model.path, error);
  return {.name = model.name,
          .bytes = plan.total_bytes() + bytes_of(model.draft) + projector_bytes(model),
          .is_pinned = model.is_pinned,
          .path = model.path,
          .file_bytes = error ? 0 : n_bytes,
          .quant = hub::quant_of(model.path),
          .load = [options, model, plan](const std::stop_token& stop) {
            if (const auto* reading = std::get_if<ReadingPlan>(&plan.how)) {
              return load_reading(options, model.name, model.path, *reading);
            }
            return load(options, model, std::get<KvPlan>(plan.how), stop);
          }};
}

Result<ModelPoolOptions> models_to_serve(const Options& options) {
  Result<std::vector<NamedModel>> models = named_models(options);
  if (!models) return std::unexpected(models.error());
  const Result<std::uint64_t> available = available_memory();
  if (!available) return std::unexpected(available.error());
  ModelPoolOptions pool{
      .models = {},
      .bytes_max = options.memory_bytes_max == 0 ? *available : options.memory_bytes_max,
      .idle_time_max = std::chrono::seconds(options.idle_seconds_max)};
  Result<std::optional<DraftPlan>> draft = plan_draft_of(options, pool.bytes_max);
  if (!draft) return std::unexpected(draft.error());
  if (*draft && options.model.empty()) {
    return fail(Code::kInvalidArgument, "--draft-model helps MODEL, and there is none");
  }
  if (*draft) models->front().draft = std::move(*draft);
  if (!options.projector.empty() && (options.model.empty() || !options.rpc.empty())) {
    return fail(Code::kInvalidArgument, options.model.empty()
                                            ? "--mmproj is for MODEL, and there is none"
                                            : "--mmproj and --rpc exclude each other");
  }
  if (!options.projector.empty()) models->front().projector = options.projector;
  for (const NamedModel& model : *models) {
    const Result<ModelPlan> plan = plan_model(options, model, pool.bytes_max);
    if (!plan) return std::unexpected(plan.error());
    pool.models.push_back(pooled_model(options, model, *plan));
  }
  if (options.uses_hub) {
    Result<hub::Settings> settings = hub::read_settings();
    if (!settings) return std::unexpected(settings.error());
    pool.library = std::make_unique<HubLibrary>(std::move(*settings), options, std::move(*models),
                                                pool.bytes_max);
  }
  return pool;
}

}  // namespace slipstream::serve
