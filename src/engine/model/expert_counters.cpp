#include "engine/model/expert_counters.h"

#include "engine/model/turbo_plugin.h"

namespace slipstream {

std::vector<turbo::ExpertCounters> read_expert_counters() {
  constexpr std::size_t kLayersMax = 1024;
  auto* read = find_turbo_function<turbo::ReadExpertCounters>();
  if (read == nullptr) return {};
  std::vector<turbo::ExpertCounters> layers(kLayersMax);
  layers.resize(read(layers.data(), layers.size()));
  return layers;
}

}  // namespace slipstream
