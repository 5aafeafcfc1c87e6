// Which kernels run: the best of this machine, or what GGML_TURBO_KERNELS names (avx2, avx512, amx,
// neon), for measuring and for finding faults.
//
// Threads: limit_kernels() once, before the first kernel runs; the rest thread-safe.
// Errors:  kInvalidArgument with the names.
#pragma once

#include <string_view>

#include "base/result.h"

namespace slipstream::turbo {

[[nodiscard]] Result<void> limit_kernels(std::string_view name);
[[nodiscard]] bool use_amx();

}  // namespace slipstream::turbo
