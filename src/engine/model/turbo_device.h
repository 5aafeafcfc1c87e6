// TurboDevice: a device of our plugin, opened for one model. The first device that is opened loads
// the plugin into ggml's registry, like any backend.
//
// Threads: thread-safe; a device has no state except the plugin's own.
// Errors:  open(): kUnsupported without the plugin; kInvalidArgument for an unknown scheme or
//          unknown experts. set_scheme(): kInvalidArgument. Fitting keys: kUnsupported, kIo.
#pragma once

#include <ggml-backend.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace slipstream {

class TurboDevice {
 public:
  // plugin: its file. experts: how they are streamed ("4G"); empty: not at all. has_products:
  // whether the device's own kernels multiply with many columns. kv_memory: how much of the KV
  // cache's codes stays in memory ("4G"); empty: all.
  [[nodiscard]] static Result<TurboDevice> open(const std::filesystem::path& plugin,
                                                const std::string& scheme,
                                                const std::string& experts, bool has_products,
                                                const std::string& kv_memory = {});

  // For llama_model_params::devices. Must outlive the model and its contexts.
  [[nodiscard]] ggml_backend_dev_t handle() const {
    return static_cast<ggml_backend_dev_t>(device_.get());
  }

  // Both take effect for contexts created later. If a file of fitted keys cannot be used, the log
  // says so: keys work without it.
  [[nodiscard]] Result<void> set_scheme(const std::string& scheme);
  void use_keys(const std::filesystem::path& file);

  // Between the two calls, the plugin observes the keys and queries of all that the model reads. At
  // the end it writes its findings per layer (docs/formats/key-profile.md) and returns the number
  // of layers.
  [[nodiscard]] Result<void> begin_fitting_keys(const std::filesystem::path& file);
  [[nodiscard]] Result<int> end_fitting_keys();

 private:
  struct Close {
    void operator()(void* device) const;
  };
  explicit TurboDevice(void* device) : device_(device) {}
  Result<int> fit_keys(const char* path);

  std::unique_ptr<void, Close> device_;
};

}  // namespace slipstream
