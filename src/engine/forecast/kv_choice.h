// Checks whether a model fits into memory, and chooses for --kv auto: the best scheme with which
// the model and the requested context fit.
//
// The order is turbo8v4 (near f16 in quality, and faster at depth), turbo4, turbo3. Only f16 is
// left if the plugin is missing or cannot compress anything in the model. For a calibrated model,
// the measured divergences give the order, and schemes found broken are left out.
//
// Threads: as in memory_forecast.h.
// Errors:  as in memory_forecast.h; kOutOfMemory if nothing fits, with a message that names the
//          largest contexts that do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/forecast/memory_forecast.h"

namespace slipstream {

struct KvChoice {
  KvScheme scheme;
  MemoryForecast forecast;  // forecast.n_ctx is the context
};

// Results of a calibration of the model (docs/calibrate.md).
struct KvFindings {
  std::vector<KvScheme> measured;        // the least divergence first; none of them broken
  std::vector<std::string> broken = {};  // schemes by name
};

// The schemes that choose() tries; it takes the first that fits. For a calibrated model, each is
// smaller than the one before it: schemes that are larger and no better are left out.
[[nodiscard]] std::vector<KvScheme> candidates(const ModelGeometry& geometry, bool has_plugin,
                                               const KvFindings* findings = nullptr);

// available_bytes: from available_memory() (base/memory_info.h). shape.n_ctx 0: the model's own.
[[nodiscard]] Result<KvChoice> choose(const ModelProfile& profile, std::uint64_t available_bytes,
                                      const ContextShape& shape, bool has_plugin,
                                      const KvFindings* findings = nullptr);
// The same check for a scheme that was requested by name.
[[nodiscard]] Result<KvChoice> check_fits(const ModelProfile& profile, const KvScheme& scheme,
                                          std::uint64_t available_bytes, const ContextShape& shape,
                                          bool has_plugin);

// What choose() requires: a twentieth more than the forecast, which is how far it may be off.
[[nodiscard]] std::uint64_t needed_bytes(const MemoryForecast& forecast);

// The largest context that fits: a multiple of 256, up to the larger of shape.n_ctx and the context
// the model was trained for. 0 if none fits.
[[nodiscard]] Result<std::int64_t> largest_context(const ModelProfile& profile,
                                                   const KvScheme& scheme,
                                                   std::uint64_t available_bytes,
                                                   const ContextShape& shape);

}  // namespace slipstream
