// Forecasts how much this process's resident set (VmRSS) grows from before a model is loaded until
// its context has been filled once in batches of n_ubatch: libllama 0.7.0, weights on the CPU, KV
// in stock types or our plugin. It is within 5 % of what is measured
// (tests/contract/memory_forecast_test.cpp).
//
// resident() is with mmap, as top shows it. total() is what must stay, and all there is without
// mmap: the mapped originals of copied weights (weight_bytes.h) are idle, and the kernel can
// reclaim them. Not counted: the server's buffers, prompts kept elsewhere.
//
// Threads: thread-safe once ggml's backends are loaded.
// Errors:  as in gguf_model.h and model_geometry.h; kUnsupported before ggml_backend_load_all()
//          and for a cache type that libllama refuses; kInvalidArgument for an impossible shape.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "engine/forecast/context_bytes.h"
#include "engine/forecast/weight_bytes.h"
#include "engine/model/kv_scheme.h"

namespace slipstream {

inline constexpr std::int64_t kContextStep = 256;  // libllama rounds contexts up to multiples of it

struct MemoryForecast {
  std::string scheme;
  std::int64_t n_ctx = 0;  // as rounded by libllama
  std::uint64_t weights_bytes = 0;
  std::uint64_t kv_bytes = 0;       // including the states of recurrent layers
  std::uint64_t compute_bytes = 0;  // results of a batch
  std::uint64_t other_bytes = 0;    // vocabulary, bookkeeping of cells, graphs, threads' scratch
  std::uint64_t idle_bytes = 0;     // not part of total()

  [[nodiscard]] std::uint64_t total() const {
    return weights_bytes + kv_bytes + compute_bytes + other_bytes;
  }
  [[nodiscard]] std::uint64_t resident() const { return total() + idle_bytes; }
};

// What a file says; read once for many forecasts.
struct ModelProfile {
  ModelGeometry geometry;
  WeightBytes weights;
};
[[nodiscard]] Result<ModelProfile> read_profile(const std::filesystem::path& path,
                                                const WeightUse& weights_use = {});

[[nodiscard]] Result<MemoryForecast> forecast(const ModelProfile& profile, const KvScheme& scheme,
                                              const ContextShape& shape);
[[nodiscard]] Result<MemoryForecast> forecast(const std::filesystem::path& path,
                                              const KvScheme& scheme, const ContextShape& shape);

// A small table for people, one line per part.
[[nodiscard]] std::string describe(const MemoryForecast& forecast);

}  // namespace slipstream
