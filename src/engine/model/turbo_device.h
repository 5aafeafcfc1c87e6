// TurboDevice: a device of our plugin, opened for one model. The plugin is loaded into ggml's
// registry like any backend, when the first device is opened.
//
// Threads: thread-safe; a device has no state but the plugin's own.
// Errors:  open: kUnsupported without the plugin, kInvalidArgument for a scheme or experts that it
//          does not know. set_scheme: kInvalidArgument. Fitting keys: kUnsupported, kIo.
#pragma once

#include <ggml-backend.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace slipstream {

class TurboDevice {
 public:
  // plugin: its file. experts: how they are streamed ("4G"); empty: they are not.
  [[nodiscard]] static Result<TurboDevice> open(const std::filesystem::path& plugin,
                                                const std::string& scheme,
                                                const std::string& experts);

  // For llama_model_params::devices. The model and its contexts must be gone before this is.
  [[nodiscard]] ggml_backend_dev_t handle() const {
    return static_cast<ggml_backend_dev_t>(device_.get());
  }

  // Both for contexts made from now on. A file of fitted keys that cannot be used is said in the
  // log: keys can do without.
  [[nodiscard]] Result<void> set_scheme(const std::string& scheme);
  void use_keys(const std::filesystem::path& file);

  // The plugin looks at the keys and queries of all that the model reads in between, and writes
  // what it found about each layer (docs/formats/key-profile.md). Gives how many layers there are.
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
