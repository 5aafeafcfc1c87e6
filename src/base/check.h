// SLIP_CHECK(condition, message): for what only a bug can break. Prints where and what, then
// aborts. Never for data, files, requests or models: those are Errors (result.h). Stays on in
// release builds.
//
// Threads: thread-safe.
#pragma once

#include <source_location>
#include <string_view>

namespace slipstream {

[[noreturn]] void check_failed(std::string_view condition, std::string_view message,
                               std::source_location where);

}  // namespace slipstream

// A macro, because only a macro can show the condition's text.
#define SLIP_CHECK(condition, message)                                                  \
  do {                                                                                  \
    if (!(condition)) [[unlikely]] {                                                    \
      ::slipstream::check_failed(#condition, message, std::source_location::current()); \
    }                                                                                   \
  } while (false)
