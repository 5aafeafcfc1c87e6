// WeightBytes: where a model's weights will be once libllama has loaded them with mmap.
//
// The CPU backend copies matrices into its own memory, in a layout for its kernels (AMX, VNNI,
// NEON), if it has such a layout for them; the rest is used in the mapped file. libllama maps the
// whole file and keeps all between the first and the last tensor that is used there. So the
// originals of copied matrices stay resident, idle, until the kernel needs their pages. The backend
// is asked which matrices are copied, as libllama does.
//
// Threads: thread-safe. Errors: kUnsupported while ggml has no CPU backend loaded.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/forecast/gguf_model.h"

namespace slipstream {

// What libllama computes with a tensor.
enum class WeightRole { kLookup, kProduct, kExpertProduct };
[[nodiscard]] WeightRole role_of(const GgufTensor& tensor);

struct WeightUse {
  bool streams_experts = false;  // they stay in the file; only what a cache holds is in memory
  bool are_plain = false;        // nothing is copied (ModelOptions::has_products)
};
struct WeightBytes {
  std::uint64_t copied = 0;
  std::uint64_t mapped = 0;   // mapped and used
  std::uint64_t idle = 0;     // mapped and never read again
  std::uint64_t experts = 0;  // of the routed experts, wherever they are
};

// n_experts_used: how many of the model's experts a token uses.
[[nodiscard]] Result<WeightBytes> weight_bytes(const GgufModel& model, std::int64_t n_experts_used,
                                               const WeightUse& how = {});

}  // namespace slipstream
