// ExpertBufferType: the buffer type TURBO_EXPERTS of one device, whose tensors of experts stay in
// the model's file.
//
// libllama puts the weights of routed experts into it, because the device says that it can multiply
// with them there, and only with those. A buffer has addresses, by which graphs name its tensors,
// and no memory behind them.
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
  // Zero cache_bytes: nothing is streamed, and nobody may allocate.
  explicit ExpertBufferType(ExpertOptions options, ggml_backend_dev_t device = nullptr);
  ExpertBufferType(const ExpertBufferType&) = delete;
  ExpertBufferType& operator=(const ExpertBufferType&) = delete;

  [[nodiscard]] ggml_backend_buffer_type_t handle() { return &type_; }
  [[nodiscard]] const ExpertOptions& options() const { return options_; }

 private:
  ggml_backend_buffer_type type_;
  ExpertOptions options_;
};

// Whether a tensor is, or would be, the experts' part of a layer's feed-forward network.
[[nodiscard]] bool is_expert_weight(const ggml_tensor* tensor);
// Whether a tensor lies in such a buffer.
[[nodiscard]] bool is_streamed(const ggml_tensor* tensor);
// The store behind such a tensor.
ExpertStore& store_of(const ggml_tensor* tensor);

// The counters of all models in the process, by layer, added up.
std::map<int, ExpertCounters> all_expert_counters();

}  // namespace slipstream::turbo
