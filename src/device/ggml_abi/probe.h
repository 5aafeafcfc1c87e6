// Checks that the ggml that loads the plugin is the one whose structs ggml_abi.h declares. The
// check runs once, at load time, before any of them is used.
//
// Threads: call from the loading thread.
// Errors:  kUnsupported, with one sentence that says what differs and what to do.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slipstream::turbo {

// Whether the tests have passed with this version of ggml.
[[nodiscard]] bool is_tested_ggml(std::string_view version);

// Reads the stock CPU registry entry, device, buffer type, buffer and backend through the structs
// of ggml_abi.h and compares each answer with that of the public function.
[[nodiscard]] Result<void> probe_ggml(std::string_view version);

}  // namespace slipstream::turbo
