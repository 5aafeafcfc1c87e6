// The layouts in which stock's CPU backend keeps weights besides plain rows: its extra buffer types.
//
// Threads: thread-safe once ggml's backends are loaded. Errors: none.
#pragma once

#include <ggml-backend.h>

#include <vector>

namespace slipstream {

inline std::vector<ggml_backend_buffer_type_t> extra_buffer_types(ggml_backend_dev_t cpu) {
  std::vector<ggml_backend_buffer_type_t> types;
  const auto get =
      reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
          ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts"));
  if (get == nullptr) return types;
  for (const ggml_backend_buffer_type_t* type = get(cpu); type != nullptr && *type != nullptr;
       ++type) {
    types.push_back(*type);
  }
  return types;
}

}  // namespace slipstream
