#include "cli/serve/hub_library.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/format.h"
#include "cli/plugin_path.h"
#include "engine/model/model.h"
#include "hub/gguf_choice.h"
#include "hub/model_name.h"
#include "hub/pull.h"
#include "hub/removal.h"

namespace slipstream::serve {
namespace {

constexpr int kResultsMax = 8;
constexpr int kRetries = 1;  // a user is waiting for the page

// The variants of a repository that can be pulled.
std::vector<ModelLibrary::Found::Variant> variants_of(const hub::RepoListing& listing) {
  std::vector<std::string> paths;
  for (const hub::RemoteFile& file : listing.files) paths.push_back(file.path);
  std::vector<ModelLibrary::Found::Variant> variants;
  for (const hub::Variant& variant : hub::find_variants(paths)) {
    if (!hub::check_complete(variant)) continue;
    std::uint64_t n_bytes = 0;
    for (const std::size_t idx : variant.parts) n_bytes += listing.files[idx].n_bytes;
    variants.push_back({.quant = std::string(variant.name()), .n_bytes = n_bytes});
  }
  return variants;
}

}  // namespace

HubLibrary::HubLibrary(hub::Settings settings, Options options, std::vector<NamedModel> served,
                       std::uint64_t bytes_max)
    : settings_(std::move(settings)),
      options_(std::move(options)),
      served_(std::move(served)),
      bytes_max_(bytes_max) {}

const NamedModel* HubLibrary::served_at(const std::string& path) const {
  const auto model = std::ranges::find(served_, path, &NamedModel::path);
  return model == served_.end() ? nullptr : &*model;
}

void HubLibrary::add_fit(Installed& model) const {
  const Result<ModelPlan> plan =
      plan_model(options_, NamedModel{.name = {}, .path = model.path}, bytes_max_);
  if (!plan) {
    model.why_not = plan.error().message;
    return;
  }
  model.n_context = plan->n_context();
  model.kv = plan->kv();
}

Result<std::vector<ModelLibrary::Installed>> HubLibrary::list() {
  std::vector<Installed> models;
  for (const NamedModel& model : served_) {
    std::error_code error;
    const std::uint64_t n_bytes = std::filesystem::file_size(model.path, error);
    models.push_back({.name = model.name,
                      .path = model.path,
                      .n_bytes = error ? 0 : n_bytes,
                      .quant = hub::quant_of(model.path),
                      .kv = {},
                      .why_not = {}});
  }
  const Result<std::vector<hub::InstalledModel>> installed = hub::list_installed(settings_.cache);
  if (!installed) return std::unexpected(installed.error());
  for (const hub::InstalledModel& model : *installed) {
    const std::string path = model.files.front().string();
    if (served_at(path) != nullptr) continue;
    models.push_back({.name = model.name.text(),
                      .path = path,
                      .n_bytes = model.n_bytes,
                      .quant = model.name.quant,
                      .kv = {},
                      .why_not = {},
                      .is_removable = true});
  }
  for (Installed& model : models) add_fit(model);
  return models;
}

Result<PooledModel> HubLibrary::find(std::string_view name) {
  const Result<hub::ModelName> asked = hub::parse_model_name(name);
  if (!asked) return std::unexpected(asked.error());
  const Result<hub::InstalledModel> installed = hub::find_installed(settings_.cache, *asked);
  if (!installed) return std::unexpected(installed.error());
  NamedModel model{.name = installed->name.text(), .path = installed->files.front().string()};
  if (const NamedModel* served = served_at(model.path)) model = *served;  // do not load it twice
  const Result<ModelPlan> plan = plan_model(options_, model, bytes_max_);
  if (!plan) return std::unexpected(plan.error());
  return pooled_model(options_, model, *plan);
}

Result<std::vector<ModelLibrary::Found>> HubLibrary::search(std::string_view text,
                                                            const std::stop_token& stop) {
  hub::HubApi api(settings_, kRetries, stop);
  const Result<std::vector<hub::SearchResult>> results = api.search(text, kResultsMax);
  if (!results) return std::unexpected(results.error());
  std::vector<Found> found;
  for (const hub::SearchResult& result : *results) {
    // Search results do not contain sizes.
    const Result<hub::RepoListing> listing = api.list(result.name);
    if (stop.stop_requested()) return std::unexpected(hub::stopped_download());
    if (!listing) continue;  // gated, or removed meanwhile: it cannot be pulled
    std::vector<Found::Variant> variants = variants_of(*listing);
    if (variants.empty()) continue;
    found.push_back({.repo = result.name.repo_id(),
                     .n_downloads = result.n_downloads,
                     .variants = std::move(variants)});
  }
  return found;
}

void HubLibrary::add_fit(Recommended& model, const Recommendation& what) const {
  const Result<KvChoice> choice =
      choose_for(what, model.n_bytes, bytes_max_, options_, find_turbo_plugin().has_value());
  if (!choice) {
    model.why_not = choice.error().message;
    return;
  }
  model.n_context = static_cast<int>(choice->forecast.n_ctx);
  model.kv = choice->scheme.name();
}

Result<ModelLibrary::Recommended> HubLibrary::look_up(const Recommendation& what,
                                                      const std::stop_token& stop) {
  {
    const MutexLock lock(mutex_);
    if (const auto found = looked_up_.find(what.repo); found != looked_up_.end()) {
      return found->second;
    }
  }
  const Result<hub::ModelName> name = hub::parse_model_name(what.repo);
  if (!name) return std::unexpected(name.error());
  const Result<hub::RepoListing> listing = hub::HubApi(settings_, kRetries, stop).list(*name);
  if (!listing) return std::unexpected(listing.error());
  std::vector<std::string> paths;
  for (const hub::RemoteFile& file : listing->files) paths.push_back(file.path);
  const std::vector<hub::Variant> variants = hub::find_variants(paths);
  const Result<hub::VariantChoice> choice = hub::choose_variant(variants, "", what.repo);
  if (!choice) return std::unexpected(choice.error());
  const hub::Variant& variant = variants[choice->variant_idx];
  Recommended model{.name = format_text("{}:{}", what.repo, variant.name()),
                    .about = std::string(what.about),
                    .kv = {},
                    .why_not = {}};
  for (const std::size_t idx : variant.parts) model.n_bytes += listing->files[idx].n_bytes;
  add_fit(model, what);
  const MutexLock lock(mutex_);
  looked_up_.insert_or_assign(what.repo, model);
  return model;
}

Result<std::vector<ModelLibrary::Recommended>> HubLibrary::recommend(const std::stop_token& stop) {
  load_backends();  // before any model is, the forecast has to ask them
  std::vector<Recommended> models;
  for (const Recommendation& what : recommendations()) {
    Result<Recommended> model = look_up(what, stop);
    if (stop.stop_requested()) return std::unexpected(hub::stopped_download());
    if (!model) {
      // A hub of one's own may have none of them, and huggingface.co says of those that it has not
      // that they are forbidden.
      const Code code = model.error().code;
      if (code == Code::kNotFound || code == Code::kPermission) continue;
      return std::unexpected(model.error());
    }
    models.push_back(std::move(*model));
  }
  return models;
}

Result<void> HubLibrary::check_name(std::string_view name) const {
  return hub::parse_model_name(name).transform([](const hub::ModelName&) {});
}

Result<void> HubLibrary::pull(std::string_view name,
                              const std::function<void(const Progress&)>& on_progress,
                              const std::stop_token& stop) {
  Result<hub::ModelName> model = hub::parse_model_name(name);
  if (!model) return std::unexpected(std::move(model.error()));
  const hub::PullOptions options{
      .model = std::move(*model),
      .download = {.stop = stop},
      .on_progress =
          [&](const hub::PullProgress& progress) {
            if (progress.stage != hub::PullProgress::Stage::kDownload) return;  // download complete
            on_progress({.n_bytes = progress.done_bytes, .n_bytes_all = progress.n_bytes});
          },
      .on_remark = {}};
  return hub::pull(settings_, options).transform([](const hub::Pulled&) {});
}

// A name without a quant would mean all models of the repository.
Result<void> HubLibrary::remove(std::string_view name) {
  const Result<hub::ModelName> asked = hub::parse_model_name(name);
  if (!asked) return std::unexpected(asked.error());
  if (asked->quant.empty()) {
    return fail(Code::kInvalidArgument,
                format_text("'{}' may be several models: name one, as org/repo:quant", name));
  }
  const Result<hub::RemovalPlan> plan = hub::plan_removal(settings_.cache, *asked);
  if (!plan) return std::unexpected(plan.error());
  for (const std::filesystem::path& link : plan->links) {
    const bool is_served = std::ranges::any_of(served_, [&](const NamedModel& model) {
      std::error_code error;
      return std::filesystem::equivalent(link, model.path, error);  // by whatever path it was named
    });
    if (!is_served) continue;
    return fail(Code::kInvalidArgument,
                format_text("{} stays: the server was started with it", asked->text()));
  }
  return hub::carry_out(*plan, settings_.cache, *asked);
}

}  // namespace slipstream::serve
