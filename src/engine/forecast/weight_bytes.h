// WeightBytes: where a model's weights will lie once libllama has loaded them with mmap.
//
// The CPU backend copies matrices into memory of its own, laid out for its kernels (AMX, VNNI,
// NEON), where it has such a layout for them; the rest is used where the file is mapped. libllama
// maps the file whole and keeps all between the first and the last tensor that is used there, so
// that the originals of copied matrices stay resident until the kernel wants their pages: idle.
// Which matrix is copied is found as libllama finds it, by asking the backend.
//
// Threads: thread-safe. Errors: kUnsupported while ggml has no CPU backend loaded.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/forecast/gguf_model.h"

namespace slipstream {

// streams_experts: they stay in the file, and are in memory only as far as a cache holds them.
struct WeightBytes {
  std::uint64_t copied = 0;
  std::uint64_t mapped = 0;   // and used
  std::uint64_t idle = 0;     // mapped, and never read again
  std::uint64_t experts = 0;  // of the routed experts, wherever they are
};

// n_experts_used: of the model's experts, per token.
[[nodiscard]] Result<WeightBytes> weight_bytes(const GgufModel& model, std::int64_t n_experts_used,
                                               bool streams_experts = false);

}  // namespace slipstream
