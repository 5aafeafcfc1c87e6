// guarded(): the border between ggml, which is called like C, and this code, which may throw. An
// exception that crossed it would end the host program.
//
// Threads: thread-safe. Errors: an exception becomes a line in the log and the caller's answer for
// a failure.
#pragma once

#include <ggml.h>

#include <array>
#include <cstdio>
#include <exception>

#include "device/log.h"

namespace slipstream::turbo {

// Takes no memory of its own, because that may be what is missing. The host's callback may need some.
inline void log_failure(const std::exception& failure) noexcept {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), "turbo: not done: %s\n", failure.what());
  try {
    write_log(GGML_LOG_LEVEL_ERROR, line.data());
  } catch (const std::exception&) {
    return;  // there is nobody left to tell
  }
}

inline void log_nothing(const std::exception& /*failure*/) noexcept {}

// Returns the result of `work`, or `otherwise` after an exception, of which `report` learns.
template <class Answer, class Work>
Answer guarded(Answer otherwise, const Work& work,
               void (*report)(const std::exception&) noexcept = log_failure) noexcept {
  try {
    return work();
  } catch (const std::exception& failure) {
    report(failure);
    return otherwise;
  }
}

// The same for work without a result. Returns whether it was done.
template <class Work>
bool is_done(const Work& work,
             void (*report)(const std::exception&) noexcept = log_failure) noexcept {
  const auto with_result = [&] {
    work();
    return true;
  };
  return guarded(false, with_result, report);
}

}  // namespace slipstream::turbo
