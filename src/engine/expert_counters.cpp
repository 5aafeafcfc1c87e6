#include "engine/expert_counters.h"

#include <ggml-backend.h>

#include <array>

namespace slipstream {
namespace {

// As the plugin writes them: a row for each layer, in the order of ExpertCounters.
using Row = std::array<std::uint64_t, 7>;
using ReadRows = std::size_t (*)(std::uint64_t* rows, std::size_t n_rows_max);
constexpr std::size_t kLayersMax = 1024;

}  // namespace

std::vector<ExpertCounters> read_expert_counters() {
  ggml_backend_reg_t plugin = ggml_backend_reg_by_name("TURBO");
  if (plugin == nullptr) return {};
  const auto read_rows = reinterpret_cast<ReadRows>(
      ggml_backend_reg_get_proc_address(plugin, "ggml_turbo_expert_counters"));
  if (read_rows == nullptr) return {};
  std::vector<Row> rows(kLayersMax);
  rows.resize(read_rows(rows.front().data(), rows.size()));
  std::vector<ExpertCounters> layers;
  for (const auto& [layer, n_hits, n_misses, n_guessed, n_guessed_used, n_bytes, stall_ns] : rows) {
    layers.push_back({.layer = layer,
                      .n_hits = n_hits,
                      .n_misses = n_misses,
                      .n_guessed = n_guessed,
                      .n_guessed_used = n_guessed_used,
                      .n_bytes_read = n_bytes,
                      .stall_ns = stall_ns});
  }
  return layers;
}

}  // namespace slipstream
