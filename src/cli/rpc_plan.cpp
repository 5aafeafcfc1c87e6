#include "cli/rpc_plan.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/format_bytes.h"
#include "base/log.h"
#include "cli/plugin_path.h"
#include "engine/forecast/kv_choice.h"
#include "engine/forecast/layer_bytes.h"
#include "engine/forecast/layer_deal.h"
#include "engine/forecast/memory_forecast.h"

namespace slipstream {
namespace {

struct HostMemory {
  RpcHost host;
  std::uint64_t free_bytes = 0;
};

Result<std::vector<HostMemory>> ask_hosts(const std::string& list) {
  const Result<std::vector<RpcHost>> hosts = parse_rpc_hosts(list);
  if (!hosts) return std::unexpected(hosts.error());
  std::vector<HostMemory> found;
  for (const RpcHost& host : *hosts) {
    if (Result<void> greeted = greet(host, kGreetingTimeMax); !greeted) {
      return std::unexpected(std::move(greeted.error()));
    }
    const Result<ggml_backend_dev_t> device = open_rpc_device(host);
    if (!device) return std::unexpected(device.error());
    found.push_back({.host = host, .free_bytes = free_bytes(*device)});
  }
  return found;
}

// As in needed_bytes(): forecasts may be off by a twentieth.
std::uint64_t usable_bytes(std::uint64_t n_bytes) { return n_bytes / 21 * 20; }

struct Needs {
  std::vector<std::uint64_t> layers;
  std::uint64_t here_bytes = 0;     // beside layers: embeddings, output, vocabulary, results
  std::uint64_t results_bytes = 0;  // of a batch, on a host
  ModelGeometry geometry;
};

Result<Needs> needs_of(const std::filesystem::path& path, const KvPlan& plan,
                       const ContextShape& asked) {
  const Result<GgufModel> file = GgufModel::open(path);
  if (!file) return std::unexpected(file.error());
  Result<ModelProfile> profile = read_profile(path, {.are_plain = true});
  if (!profile) return std::unexpected(profile.error());
  const Result<KvScheme> scheme = parse_kv_scheme(plan.scheme);
  if (!scheme) return std::unexpected(scheme.error());
  ContextShape shape = asked;
  shape.n_ctx = plan.n_context;
  const Result<MemoryForecast> whole = forecast(*profile, *scheme, shape);
  if (!whole) return std::unexpected(whole.error());
  Result<std::vector<std::uint64_t>> layers = layer_bytes(*file, profile->geometry, *scheme, shape);
  if (!layers) return std::unexpected(layers.error());
  std::uint64_t rest = whole->total();
  for (const std::uint64_t n_bytes : *layers) rest -= std::min(rest, n_bytes);
  return Needs{.layers = std::move(*layers),
               .here_bytes = rest,
               .results_bytes = whole->compute_bytes,
               .geometry = std::move(profile->geometry)};
}

std::vector<CacheShape> caches_of(const ModelGeometry& geometry, int first, int end) {
  std::vector<CacheShape> caches;
  for (const AttentionLayer& layer : geometry.attention) {
    if (layer.layer < first || layer.layer >= end || layer.is_latent()) continue;
    caches.push_back({.layer = layer.layer,
                      .key_channels = layer.key_channels,
                      .value_channels = layer.value_channels});
  }
  return caches;
}

void log_share(std::string_view machine, int first, int n_layers, std::uint64_t n_bytes,
               std::uint64_t available_bytes) {
  log::info("rpc.layers",
            {{"host", machine},
             {"layers", n_layers == 0 ? std::string("none")
                                      : format_text("{}-{}", first, first + n_layers - 1)},
             {"needs", format_bytes(n_bytes)},
             {"available", format_bytes(available_bytes)}});
}

Result<void> deal(KvPlan& plan, const Needs& needs, const std::vector<HostMemory>& hosts,
                  std::uint64_t available_here) {
  std::vector<LayerTaker> machines;
  for (const HostMemory& host : hosts) {
    machines.push_back({.name = host.host.name,
                        .available_bytes = usable_bytes(host.free_bytes),
                        .fixed_bytes = needs.results_bytes});
  }
  machines.push_back({.name = "this machine",
                      .available_bytes = usable_bytes(available_here),
                      .fixed_bytes = needs.here_bytes,
                      .is_needed = true});
  const Result<std::vector<int>> n_layers = deal_layers(needs.layers, machines);
  if (!n_layers) return std::unexpected(n_layers.error());
  int first = 0;
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const int n = n_layers->at(i);
    std::uint64_t n_bytes = machines[i].fixed_bytes;
    for (int layer = first; layer < first + n; ++layer) {
      n_bytes += needs.layers[static_cast<std::size_t>(layer)];
    }
    log_share(machines[i].name, first, n, n_bytes, machines[i].available_bytes);
    if (i == hosts.size()) {
      plan.spread.n_layers_here = n;
      plan.total_bytes = n_bytes + n_bytes / 20;
    } else if (n > 0) {
      plan.spread.remote.push_back({.host = hosts[i].host,
                                    .n_layers = n,
                                    .caches = caches_of(needs.geometry, first, first + n)});
    }
    first += n;
  }
  return {};
}

}  // namespace

Result<KvPlan> plan_over_hosts(const std::string& hosts, const std::filesystem::path& model,
                               const KvWish& kv, const ContextWish& context,
                               const MemoryWish& memory, const WeightWish& weights) {
  if (hosts.empty()) return plan_kv(model, kv, context, memory, weights);
  if (weights.streams_experts || kv.memory_bytes != 0) {
    return fail(Code::kInvalidArgument,
                "--rpc goes with neither --stream-experts nor --kv-memory: these are of this "
                "machine alone");
  }
  const Result<std::filesystem::path> plugin = find_turbo_plugin();
  if (!plugin) return std::unexpected(plugin.error());
  const Result<std::vector<HostMemory>> found = ask_hosts(hosts);
  if (!found) return std::unexpected(found.error());
  MemoryWish all = memory;
  for (const HostMemory& host : *found) all.available_bytes += host.free_bytes;
  // What is faster here would make answers depend on who has which layers.
  WeightWish everywhere = weights;
  if (everywhere.prompts == "auto") everywhere.prompts = "off";
  Result<KvPlan> plan = plan_kv(model, kv, context, all, everywhere);
  if (!plan) return plan;
  const Result<Needs> needs = needs_of(model, *plan, context.shape);
  if (!needs) return std::unexpected(needs.error());
  if (Result<void> dealt = deal(*plan, *needs, *found, memory.available_bytes); !dealt) {
    return std::unexpected(std::move(dealt.error()));
  }
  plan->plugin = *plugin;
  return plan;
}

}  // namespace slipstream
