// The buffer type TURBO_EXPERTS: tensors of experts that stay in the model's file.
//
// libllama puts the weights of routed experts into it, because the device says that it can multiply
// with them there, and only with those. A buffer has addresses, by which graphs name its tensors,
// and no memory behind them.
//
// Threads: as ggml uses buffers; options and counters are thread-safe. Errors: those of
// ExpertStore.
#pragma once

#include <memory>

#include "base/mapping.h"
#include "device/experts/expert_store.h"
#include "device/ggml_abi/ggml_abi.h"

namespace slipstream::turbo {

// The process has one; its `device` is filled in by the device.
ggml_backend_buffer_type* expert_buffer_type();

// What models loaded from now on are streamed with; zero cache_bytes: they are not streamed.
void set_expert_options(ExpertOptions options);
[[nodiscard]] ExpertOptions expert_options();

// Whether a tensor is, or would be, the experts' part of a layer's feed-forward network.
[[nodiscard]] bool is_expert_weight(const ggml_tensor* tensor);
// Whether a tensor lies in such a buffer.
[[nodiscard]] bool is_streamed(const ggml_tensor* tensor);
// The store behind such a tensor.
ExpertStore& store_of(const ggml_tensor* tensor);

// The counters of all models in the process, by layer, added up.
std::map<int, ExpertCounters> all_expert_counters();

}  // namespace slipstream::turbo
