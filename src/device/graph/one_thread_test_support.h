// Test support: makes a backend compute on one thread.
#pragma once

#include <ggml-backend.h>

namespace slipstream::turbo {

inline void use_one_thread(ggml_backend_t backend) {
  const auto set = reinterpret_cast<ggml_backend_set_n_threads_t>(ggml_backend_reg_get_proc_address(
      ggml_backend_dev_backend_reg(ggml_backend_get_device(backend)),
      "ggml_backend_set_n_threads"));
  set(backend, 1);
}

// The thread sanitizer does not understand OpenMP's threads, so a test uses one thread with it.
inline void use_known_threads([[maybe_unused]] ggml_backend_t backend) {
#if defined(__SANITIZE_THREAD__)
  use_one_thread(backend);
#endif
}

}  // namespace slipstream::turbo
