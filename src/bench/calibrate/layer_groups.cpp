#include <algorithm>

#include "base/check.h"
#include "base/format.h"
#include "bench/calibrate/probe.h"
#include "engine/forecast/context_bytes.h"

namespace slipstream::calibrate {

double bytes_per_token(const ModelGeometry& geometry, const KvScheme& scheme) {
  // The difference of two contexts excludes states of recurrent layers, which are in both.
  constexpr std::int64_t kCells = 4096;
  const std::uint64_t few = cache_bytes(geometry, scheme, {.n_ctx = kCells});
  const std::uint64_t many = cache_bytes(geometry, scheme, {.n_ctx = 2 * kCells});
  return static_cast<double>(many - few) / static_cast<double>(kCells);
}

Result<void> check_scheme(const ModelGeometry& geometry, std::string_view kv) {
  const Result<KvScheme> scheme = parse_kv_scheme(kv);
  if (!scheme) return std::unexpected(scheme.error());
  return check_cache(geometry, *scheme);
}

std::vector<LayerGroup> group_layers(const ModelGeometry& geometry, int n_together) {
  std::vector<int> layers;
  for (const AttentionLayer& layer : geometry.attention) {
    if (can_compress(layer)) layers.push_back(layer.layer);
  }
  std::ranges::sort(layers);
  const auto n_layers = static_cast<int>(layers.size());
  if (n_together == 0) n_together = std::max(1, (n_layers + kGroupsMax - 1) / kGroupsMax);
  std::vector<LayerGroup> groups;
  for (int i = 0; i < n_layers; i += n_together) {
    const int last = std::min(i + n_together, n_layers) - 1;
    groups.push_back({.first_layer = layers[static_cast<std::size_t>(i)],
                      .last_layer = layers[static_cast<std::size_t>(last)],
                      .keys = {{.bits = 8}},
                      .values = {{.bits = 8}}});
  }
  return groups;
}

}  // namespace slipstream::calibrate
