// Finds the functions of our plugin (contract/plugin.h) in ggml's registry.
//
// Threads: thread-safe. Errors: null if the plugin is not loaded or lacks the function.
#pragma once

#include <ggml-backend.h>

#include "contract/plugin.h"

namespace slipstream {

template <class Entry>
[[nodiscard]] typename Entry::Function* find_turbo_function() {
  ggml_backend_reg_t plugin = ggml_backend_reg_by_name(turbo::kPluginName);
  if (plugin == nullptr) return nullptr;
  // get_proc_address returns a void* that points to a function.
  return reinterpret_cast<typename Entry::Function*>(
      ggml_backend_reg_get_proc_address(plugin, Entry::kName));
}

}  // namespace slipstream
