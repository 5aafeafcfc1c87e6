// Expands weights to unsigned bytes with f32 scales, for products of bytes.
//
// Nothing is rounded: weight k is bytes[k] * scale - minimum, with the scale and minimum of its
// part of a block of 32. A type whose weights are signed has a minimum of its own making: Q8_0
// becomes 0 to 255 with a minimum of 128 scales.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <ggml.h>

#include <cstddef>
#include <cstdint>

namespace slipstream::turbo {

// Where a row is written. The scale of part p of block b is scales[b * block_stride + p *
// part_stride], as is its minimum.
struct ByteRow {
  std::uint8_t* bytes;
  float* scales;
  float* minima;
  std::size_t block_stride;
  std::size_t part_stride;
};

// REQUIRES: n is a multiple of the type's block; `blocks` begins with a whole one.
using ByteExpander = void (*)(const void* blocks, std::int64_t n, const ByteRow& row);

struct ByteWeights {
  ByteExpander expand;  // null: weights of this type are not bytes
  int n_parts;          // of a block of 32, with a scale each
  int largest;          // of the bytes
};
[[nodiscard]] ByteWeights byte_weights(ggml_type type);

}  // namespace slipstream::turbo
