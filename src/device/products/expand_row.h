// Expands weights of any type to f32, for products with many columns.
//
// The common types have expanders of ours, because ggml's public ones are compiled for the oldest
// machine and take longer than the product itself. Any other type takes ggml's.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <ggml.h>

#include <cstdint>

namespace slipstream::turbo {

// floats[i] = weight i of n, beginning with a whole block.
// REQUIRES: n is a multiple of the type's block.
using RowExpander = void (*)(const void* blocks, float* floats, std::int64_t n);

// null: the type cannot be expanded.
[[nodiscard]] RowExpander row_expander(ggml_type type);

}  // namespace slipstream::turbo
