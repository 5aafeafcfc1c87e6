// Chooses the kernels that run: the best of this machine, or those that GGML_TURBO_KERNELS names
// (avx2, avx512, amx; on ARM neon), for measurements and for debugging.
//
// Threads: limit_kernels() by one thread; the rest is thread-safe.
// Errors:  kInvalidArgument with the valid names.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slipstream::turbo {

// A wrong name changes nothing.
// REQUIRES: no kernel has run yet.
[[nodiscard]] Result<void> limit_kernels(std::string_view name);
[[nodiscard]] bool use_amx();

}  // namespace slipstream::turbo
