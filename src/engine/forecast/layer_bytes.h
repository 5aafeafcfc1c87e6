// layer_bytes(): what each layer of a model takes on another machine: its weights as they are in the
// file, and its part of the KV cache.
//
// Threads: thread-safe.
// Errors:  kUnsupported for models with recurrent layers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/forecast/context_bytes.h"
#include "engine/forecast/gguf_model.h"

namespace slipstream {

// REQUIRES: check_cache() has accepted the scheme.
[[nodiscard]] Result<std::vector<std::uint64_t>> layer_bytes(const GgufModel& model,
                                                             const ModelGeometry& geometry,
                                                             const KvScheme& scheme,
                                                             const ContextShape& shape);

}  // namespace slipstream
