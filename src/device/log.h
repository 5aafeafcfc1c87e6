// The device's log: writes a line through ggml's callback, so that it appears among the host
// program's lines.
//
// Threads: thread-safe if the host's callback is.
#pragma once

#include <ggml.h>

#include <string>

#include "base/format.h"

namespace slipstream::turbo {

// line: with the name of the device before it and the end of the line after it.
inline void write_log(ggml_log_level level, const char* line) {
  ggml_log_callback callback = nullptr;
  void* user_data = nullptr;
  ggml_log_get(&callback, &user_data);
  if (callback != nullptr) callback(level, line, user_data);
}

inline void log_line(ggml_log_level level, const std::string& text) {
  write_log(level, format_text("turbo: {}\n", text).c_str());
}

}  // namespace slipstream::turbo
