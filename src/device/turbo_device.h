// TurboDevice: a ggml device for one model that decorates the CPU device. It keeps libllama's KV
// cache compressed, streams experts, and passes everything else to an inner CPU backend.
//
// A process has one device per model, each with its own scheme and options. A buffer belongs to the
// device that allocated it and keeps the settings that it was allocated with.
//
// Threads: thread-safe; a backend is used by one thread at a time, as ggml does.
// Errors:  use_keys: those of fit/profile_file.h.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "contract/scheme.h"
#include "device/experts/expert_buffer.h"
#include "device/fit/fit_run.h"
#include "device/ggml_abi/ggml_abi.h"
#include "device/kv_buffer/kv_buffer.h"

namespace slipstream::turbo {

class TurboDevice {
 public:
  // reg: the registry entry that the device belongs to.
  // has_products: whether our own kernels multiply with many columns (graph/product_nodes.h).
  // cold: for chunks of the KV cache that are not read for a while; null: all stay in memory.
  TurboDevice(ggml_backend_reg_t reg, Scheme scheme, ExpertOptions experts,
              bool has_products = false, std::shared_ptr<ColdStore> cold = nullptr);
  TurboDevice(const TurboDevice&) = delete;
  TurboDevice& operator=(const TurboDevice&) = delete;

  [[nodiscard]] ggml_backend_dev_t handle() { return &device_; }
  // REQUIRES: device is the handle() of a TurboDevice.
  [[nodiscard]] static TurboDevice& of(ggml_backend_dev_t device);

  [[nodiscard]] KvBufferType& caches() { return caches_; }
  [[nodiscard]] ExpertBufferType& experts() { return experts_; }
  // The buffer types, besides the device's own, that libllama may put weights into. The list ends
  // with null.
  [[nodiscard]] ggml_backend_buffer_type_t* extra_buffer_types();

  // Sets the profile of fitted keys for buffers allocated from now on. An empty path means no
  // profile. After an error there is no profile either.
  [[nodiscard]] Result<void> use_keys(const std::string& path);

  [[nodiscard]] bool has_products() const { return has_products_; }

  // The run that collects keys for a profile; null: keys are not being collected.
  [[nodiscard]] std::shared_ptr<FitRun> fit_run() const;
  // Returns the previous run.
  std::shared_ptr<FitRun> exchange_fit_run(std::shared_ptr<FitRun> run);

 private:
  ggml_backend_device device_;
  KvBufferType caches_;
  ExpertBufferType experts_;
  std::array<ggml_backend_buffer_type_t, 2> extra_buffer_types_;
  bool has_products_;
  mutable Mutex mutex_;
  std::shared_ptr<FitRun> fit_run_ SLIP_GUARDED_BY(mutex_);
};

// Settings of a backend of any TurboDevice. ggml looks these functions up by name.
void set_n_threads(ggml_backend_t backend, int n_threads);
void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void* data);

}  // namespace slipstream::turbo
