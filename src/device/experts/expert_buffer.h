// ExpertBufferType: the buffer type TURBO_EXPERTS of one device. Its tensors, the weights of
// experts, stay in the model's file.
//
// libllama puts the weights of routed experts into it, and no others, because the device says that
// it can multiply only those in such a buffer. A buffer has addresses, by which graphs identify its
// tensors, but no memory behind them.
//
// Threads: as ggml uses buffers; counters are thread-safe. Errors: those of ExpertStore.
#pragma once

#include <memory>

#include "base/mapping.h"
#include "device/experts/expert_store.h"
#include "device/ggml_abi/ggml_abi.h"

namespace slipstream::turbo {

class ExpertBufferType {
 public:
  // If cache_bytes is 0, nothing is streamed, and no buffer may be allocated.
  explicit ExpertBufferType(ExpertOptions options, ggml_backend_dev_t device = nullptr);
  ExpertBufferType(const ExpertBufferType&) = delete;
  ExpertBufferType& operator=(const ExpertBufferType&) = delete;

  [[nodiscard]] ggml_backend_buffer_type_t handle() { return &type_; }
  [[nodiscard]] const ExpertOptions& options() const { return options_; }

 private:
  ggml_backend_buffer_type type_;
  ExpertOptions options_;
};

// Whether a tensor, by its name, holds experts' weights of a layer's feed-forward network.
[[nodiscard]] bool is_expert_weight(const ggml_tensor* tensor);
// Whether a tensor lies in a buffer of this type.
[[nodiscard]] bool is_streamed(const ggml_tensor* tensor);
// The store behind such a tensor.
ExpertStore& store_of(const ggml_tensor* tensor);

// The counters by layer, summed over all models in the process.
std::map<int, ExpertCounters> all_expert_counters();

}  // namespace slipstream::turbo
