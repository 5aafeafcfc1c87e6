// build_info(): which program this is, and with which engine it runs.
//
// Threads: immutable. Errors: none.
#pragma once

#include <string>

namespace slipstream {

// "slipstream 0.1.0 (llama.cpp 1.2, ggml 3.4)"
[[nodiscard]] std::string build_info();

}  // namespace slipstream
