// libggml-cpu-turbo.so: makes stock programs load libggml-turbo.so from ggml's backend directory.
//
// ggml loads from there only backends whose names it knows. But it asks every libggml-cpu-*.so for
// its score on this machine, loads the best one, and then the file that GGML_BACKEND_PATH names. So
// this library scores 0 and is never loaded as a backend. When it is asked for its score, it sets
// GGML_BACKEND_PATH to the plugin in its own directory, if the user named a KV scheme, memory for
// experts or fast prompts. It does not change a path that the user set.
//
// Threads: ggml asks once, while it loads backends, which programs do before anything else.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "contract/environment.h"

namespace {

constexpr const char* kPluginFile = "libggml-turbo.so";

bool names_something(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

void name_plugin_beside(const void* code_of_this_file) {
  Dl_info file{};
  if (dladdr(code_of_this_file, &file) == 0) return;
  std::string plugin = file.dli_fname;
  plugin.replace(plugin.rfind('/') + 1, std::string::npos, kPluginFile);
  if (access(plugin.c_str(), R_OK) == 0) setenv("GGML_BACKEND_PATH", plugin.c_str(), 0);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int ggml_backend_score() {
  if (names_something(slipstream::turbo::kSchemeVariable) ||
      names_something(slipstream::turbo::kExpertsVariable) ||
      names_something(slipstream::turbo::kPromptsVariable)) {
    name_plugin_beside(reinterpret_cast<const void*>(&ggml_backend_score));
  }
  return 0;
}
