// TurboDevice: a ggml device that decorates the CPU device, for one model. It keeps libllama's KV
// cache compressed, streams experts, and hands everything else to an inner CPU backend.
//
// A process has as many as it has models, each with its own scheme and options. Buffers belong to
// the device that allocated them, and remember what they were allocated for.
//
// Threads: thread-safe; backends as ggml uses them, one thread at a time.
// Errors:  use_keys: as of fit/profile_file.h.
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
  // reg: the registry's entry that it belongs to.
  TurboDevice(ggml_backend_reg_t reg, Scheme scheme, ExpertOptions experts);
  TurboDevice(const TurboDevice&) = delete;
  TurboDevice& operator=(const TurboDevice&) = delete;

  [[nodiscard]] ggml_backend_dev_t handle() { return &device_; }
  // REQUIRES: a handle() of one.
  [[nodiscard]] static TurboDevice& of(ggml_backend_dev_t device);

  [[nodiscard]] KvBufferType& caches() { return caches_; }
  [[nodiscard]] ExpertBufferType& experts() { return experts_; }
  // Where libllama may put weights besides the device's own buffers; ends with null.
  [[nodiscard]] ggml_backend_buffer_type_t* extra_buffer_types();

  // What was fitted to keys, for buffers allocated from now on; empty: nothing was. After an error
  // too.
  [[nodiscard]] Result<void> use_keys(const std::string& path);

  // What keys are looked at for; null: they are not.
  [[nodiscard]] std::shared_ptr<FitRun> fit_run() const;
  // Gives the one before.
  std::shared_ptr<FitRun> exchange_fit_run(std::shared_ptr<FitRun> run);

 private:
  ggml_backend_device device_;
  KvBufferType caches_;
  ExpertBufferType experts_;
  std::array<ggml_backend_buffer_type_t, 2> extra_buffer_types_;
  mutable Mutex mutex_;
  std::shared_ptr<FitRun> fit_run_ SLIP_GUARDED_BY(mutex_);
};

// Of the backends of all devices, which are found by name.
void set_n_threads(ggml_backend_t backend, int n_threads);
void set_abort_callback(ggml_backend_t backend, ggml_abort_callback callback, void* data);

}  // namespace slipstream::turbo
