#include "engine/model/turbo_device.h"

#include <mutex>

#include "base/format.h"
#include "base/log.h"
#include "engine/model/llama_log.h"
#include "engine/model/turbo_plugin.h"

namespace slipstream {
namespace {

// ggml keeps what it has loaded. Its list of backends has no lock.
Result<void> load_plugin(const std::filesystem::path& plugin) {
  static std::mutex mutex;
  static bool is_loaded = false;
  const std::lock_guard held(mutex);
  is_loaded = is_loaded || ggml_backend_load(plugin.c_str()) != nullptr;
  if (is_loaded) return {};
  return fail(Code::kUnsupported,
              with_llama_complaint(format_text("ggml refuses the plugin {}", plugin.string())));
}

}  // namespace

Result<TurboDevice> TurboDevice::open(const std::filesystem::path& plugin,
                                      const std::string& scheme, const std::string& experts,
                                      bool has_products, const std::string& kv_memory) {
  if (Result<void> loaded = load_plugin(plugin); !loaded) {
    return std::unexpected(std::move(loaded.error()));
  }
  auto* open = find_turbo_function<turbo::OpenDevice>();
  void* device = open == nullptr ? nullptr
                                 : open(scheme.c_str(), experts.c_str(),
                                        has_products ? "on" : "off", kv_memory.c_str());
  if (device == nullptr) {
    return fail(Code::kInvalidArgument,
                with_llama_complaint(
                    format_text("the plugin has no device for KV {}{}{}", scheme,
                                experts.empty() ? "" : " with experts streamed by ", experts)));
  }
  return TurboDevice(device);
}

void TurboDevice::Close::operator()(void* device) const {
  if (auto* close = find_turbo_function<turbo::CloseDevice>(); close != nullptr) close(device);
}

Result<void> TurboDevice::set_scheme(const std::string& scheme) {
  auto* set = find_turbo_function<turbo::SetScheme>();
  if (set != nullptr && set(device_.get(), scheme.c_str())) return {};
  return fail(Code::kInvalidArgument, with_llama_complaint(format_text("no KV scheme {}", scheme)));
}

void TurboDevice::use_keys(const std::filesystem::path& file) {
  auto* use = find_turbo_function<turbo::UseKeys>();
  if (use != nullptr && use(device_.get(), file.c_str())) return;
  log::warn("model.key_profile", {{"ignored", take_llama_complaint()}});
}

Result<int> TurboDevice::fit_keys(const char* path) {
  auto* fit = find_turbo_function<turbo::FitKeys>();
  if (fit == nullptr) return fail(Code::kUnsupported, "the plugin cannot fit keys");
  const int n_layers = fit(device_.get(), path);
  if (n_layers < 0) return fail(Code::kIo, with_llama_complaint("keys cannot be fitted"));
  return n_layers;
}

Result<void> TurboDevice::begin_fitting_keys(const std::filesystem::path& file) {
  return fit_keys(file.c_str()).transform([](int) {});
}

Result<int> TurboDevice::end_fitting_keys() { return fit_keys(""); }

}  // namespace slipstream
