// Whether a model fits into memory. --kv auto: the best scheme with which a model and the context
// asked for fit into memory.
//
// In this order: turbo8v4 (near f16 in quality, and faster at depth), turbo4, turbo3. f16 where the
// plugin is missing or can compress nothing of the model. Of a calibrated model the order is that
// of the measured divergences, and what was found broken is not taken at all.
//
// Threads: as of memory_forecast.h. Errors: as of it; kOutOfMemory if nothing fits, with the
// largest
//          contexts that do in the message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/forecast/memory_forecast.h"

namespace slipstream {

struct KvChoice {
  KvScheme scheme;
  MemoryForecast forecast;  // its n_ctx is the context
};

// What was found out about the model (docs/calibrate.md).
struct KvFindings {
  std::vector<KvScheme> measured;        // the least divergence first, none of them broken
  std::vector<std::string> broken = {};  // schemes by name
};

// What choose() takes the first of that fits. Of a calibrated model each is smaller than the one
// before it: what is larger and no better is left out.
[[nodiscard]] std::vector<KvScheme> candidates(const ModelGeometry& geometry, bool has_plugin,
                                               const KvFindings* findings = nullptr);

// available_bytes: of available_memory() (base/memory_info.h). shape.n_ctx 0: the model's own.
[[nodiscard]] Result<KvChoice> choose(const ModelProfile& profile, std::uint64_t available_bytes,
                                      const ContextShape& shape, bool has_plugin,
                                      const KvFindings* findings = nullptr);
// The same for a scheme that was asked for by name.
[[nodiscard]] Result<KvChoice> check_fits(const ModelProfile& profile, const KvScheme& scheme,
                                          std::uint64_t available_bytes, const ContextShape& shape,
                                          bool has_plugin);

// What choose() wants to be available: a twentieth more than the forecast, which is off by as much.
[[nodiscard]] std::uint64_t needed_bytes(const MemoryForecast& forecast);

// The largest context, a multiple of 256, up to the one the model was trained for, that fits; 0 if
// none does.
[[nodiscard]] Result<std::int64_t> largest_context(const ModelProfile& profile,
                                                   const KvScheme& scheme,
                                                   std::uint64_t available_bytes,
                                                   const ContextShape& shape);

}  // namespace slipstream
