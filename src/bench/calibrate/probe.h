// The probe: how far a model moves away from f16 if keys or values of some of its layers have fewer
// bits. It uses one process, one load of the weights, and a new context for each scheme. Layers are
// combined into at most kGroupsMax groups unless the task says otherwise, so that many layers take
// no longer than a few. The data fitted to keys (engine/model/turbo_device.h) is made first, from
// text that is measured neither here nor by trials, and used from then on. Widths go down from 4 bits until one
// costs more than the budget.
//
// Threads: probe() by one thread per process.
// Errors:  those of Model::load() and divergence_pass.h; kInvalidArgument for a depth that exceeds
//          the model or the text; kUnsupported for a model in which nothing can be compressed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/calibrate/evidence.h"
#include "bench/child_task.h"
#include "engine/forecast/model_geometry.h"

namespace slipstream::calibrate {

struct ProbeTask {
  std::string model = {};
  std::string plugin = {};
  std::string text = {};         // a file; empty: plain_text()
  std::string directory = {};    // for log-probabilities of f16
  std::string key_profile = {};  // where the data fitted to keys is written
  int depth = 512;
  int n_chunks = 1;
  int n_trial_tokens = 0;     // that trials read; keys are fitted to the text after them
  int n_layers_together = 0;  // 0: so that there are kGroupsMax groups
  int n_threads = 0;
  bool has_products = false;  // ModelOptions
  double budget = 0;
};

inline constexpr int kGroupsMax = 8;
inline constexpr int kFitTokens = 4096;
// 4-bit keys that keep their offset (KeyOffset).
inline constexpr const char* kKeysWithoutCentre = "q4_0/f16";

[[nodiscard]] Result<ProbeResult> probe(const ProbeTask& task,
                                        const bench::OnProgress& on_progress);

// The layers that can be compressed, in groups of n_together, with only the size of 8
// bits filled in.
[[nodiscard]] std::vector<LayerGroup> group_layers(const ModelGeometry& geometry, int n_together);

// The bytes that a token takes in the cache.
[[nodiscard]] double bytes_per_token(const ModelGeometry& geometry, const KvScheme& scheme);

// Whether the model can have a cache of this scheme; kUnsupported if not. Stock's types have blocks
// of 32 channels, into which not every head can be divided.
[[nodiscard]] Result<void> check_scheme(const ModelGeometry& geometry, std::string_view kv);

// Runs the process of a probe (child_task.h). Returns the exit status.
int answer_as_probe();

}  // namespace slipstream::calibrate
