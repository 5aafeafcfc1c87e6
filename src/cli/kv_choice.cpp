#include "cli/kv_choice.h"

#include "cli/plugin_path.h"

namespace slipstream {

Result<KvPlan> plan_kv(const std::filesystem::path& /*model*/, std::string_view kv, int n_context) {
  constexpr int kDefaultContext = 4096;
  KvPlan plan{.scheme = std::string(kv),
              .plugin = {},
              .n_context = n_context > 0 ? n_context : kDefaultContext};
  const Result<std::filesystem::path> plugin = find_turbo_plugin();
  if (kv == "auto") plan.scheme = plugin ? "turbo8v4" : "f16";
  if (!plan.scheme.starts_with("turbo")) return plan;
  if (!plugin) return std::unexpected(plugin.error());
  plan.plugin = *plugin;
  return plan;
}

}  // namespace slipstream
