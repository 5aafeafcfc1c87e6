#include "cli/kv_choice.h"

#include <algorithm>

#include "cli/plugin_path.h"
#include "engine/memory/kv_choice.h"
#include "engine/model.h"

namespace slipstream {
namespace {

constexpr std::int64_t kDefaultContext = 8192;

Result<KvChoice> choose_or_check(const ModelProfile& profile, std::string_view kv,
                                 const ContextShape& shape, std::uint64_t available_bytes,
                                 bool has_plugin) {
  if (kv == "auto") return choose(profile, available_bytes, shape, has_plugin);
  const Result<KvScheme> scheme = parse_kv_scheme(kv);
  if (!scheme) return std::unexpected(scheme.error());
  return check_fits(profile, *scheme, available_bytes, shape, has_plugin);
}

}  // namespace

Result<KvPlan> plan_kv(const std::filesystem::path& model, std::string_view kv, ContextShape shape,
                       std::uint64_t available_bytes) {
  const Result<std::filesystem::path> plugin = find_turbo_plugin();
  const bool wants_plugin = kv.starts_with("turbo");
  if (wants_plugin && !plugin) return std::unexpected(plugin.error());

  load_backends();
  const Result<ModelProfile> profile = read_profile(model);
  KvPlan plan;
  if (profile) {
    if (shape.n_ctx == 0) shape.n_ctx = std::min(kDefaultContext, profile->geometry.n_ctx_train);
    const Result<KvChoice> choice =
        choose_or_check(*profile, kv, shape, available_bytes, plugin.has_value());
    if (!choice) return std::unexpected(choice.error());
    plan = {.scheme = choice->scheme.name(),
            .plugin = {},
            .n_context = static_cast<int>(choice->forecast.n_ctx),
            .kv_bytes = choice->forecast.kv_bytes,
            .total_bytes = needed_bytes(choice->forecast)};
  } else if (profile.error().code == Code::kUnsupported) {
    // An architecture that libllama may know and the forecast does not.
    plan = {.scheme = std::string(kv == "auto" ? (plugin ? "turbo8v4" : "f16") : kv),
            .plugin = {},
            .n_context = static_cast<int>(shape.n_ctx > 0 ? shape.n_ctx : kDefaultContext)};
  } else {
    return std::unexpected(profile.error());
  }
  if (plan.scheme.starts_with("turbo")) plan.plugin = *plugin;
  return plan;
}

}  // namespace slipstream
