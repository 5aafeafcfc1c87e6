#include "engine/key_fitting.h"

#include "engine/llama_log.h"
#include "engine/turbo_plugin.h"

namespace slipstream {
namespace {

Result<int> fit_keys(const char* path) {
  auto* fit = find_turbo_function<turbo::FitKeys>();
  if (fit == nullptr) return fail(Code::kUnsupported, "the plugin cannot fit keys");
  const int n_layers = fit(path);
  if (n_layers < 0) return fail(Code::kIo, with_llama_complaint("keys cannot be fitted"));
  return n_layers;
}

}  // namespace

Result<void> begin_fitting_keys(const std::filesystem::path& file) {
  return fit_keys(file.c_str()).transform([](int) {});
}

Result<int> end_fitting_keys() { return fit_keys(""); }

}  // namespace slipstream
