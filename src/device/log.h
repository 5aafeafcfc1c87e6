// The device's log: writes a line through ggml's callback, so that it appears among the host
// program's lines.
//
// Threads: thread-safe if the host's callback is.
#pragma once

#include <ggml.h>

#include <string>

#include "base/format.h"

namespace slipstream::turbo {

inline void log_line(ggml_log_level level, const std::string& text) {
  ggml_log_callback callback = nullptr;
  void* user_data = nullptr;
  ggml_log_get(&callback, &user_data);
  if (callback != nullptr) callback(level, format_text("turbo: {}\n", text).c_str(), user_data);
}

}  // namespace slipstream::turbo
