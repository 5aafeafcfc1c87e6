// Is the ggml that loaded us the one whose structs ggml_abi.h declares? Asked once, at load time,
// before any of them is used.
//
// Threads: call from the loading thread.
// Errors:  kUnsupported, with one sentence that says what differs and what to do.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slipstream::turbo {

// The ggml versions that the tests have passed with.
[[nodiscard]] bool is_tested_ggml(std::string_view version);

// Reads the stock CPU registry entry, device, buffer type, buffer and backend through our structs
// and compares each answer with the public function's.
[[nodiscard]] Result<void> probe_ggml(std::string_view version);

}  // namespace slipstream::turbo
