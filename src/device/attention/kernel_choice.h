// Which kernels run: the best of this machine, or what GGML_TURBO_KERNELS names (avx2, avx512, amx,
// neon), for measuring and for finding faults.
//
// Threads: limit_kernels() by one thread; the rest thread-safe.
// Errors:  kInvalidArgument with the names.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slipstream::turbo {

// REQUIRES: no kernel has run yet.
[[nodiscard]] Result<void> limit_kernels(std::string_view name);
[[nodiscard]] bool use_amx();

}  // namespace slipstream::turbo
