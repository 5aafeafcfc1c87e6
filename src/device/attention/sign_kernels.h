// The kernels by which a query finds the chunks that it needs: they estimate its scores from the
// signs of the keys (kv_buffer/key_signs.h).
//
//   signs --sign_dots--> sums of digits --best_of_chunk--> the largest estimate of the chunk
//
// Many queries at once are multiplied by AMX instead, with the signs expanded to bytes.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstdint>

#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo {

// dots[row][tile * 16 + token] = sum of the row's digits in the channels where the sign is 1.
// `keys` of the work are tiles of signs, `tile_bytes` apart.
void sign_dots(const DotRows& work);

// Expands tiles of signs to bytes 0 and 1, [tile][channel / 4][token][channel % 4].
// REQUIRES: bytes have room for expanded_bytes(head_dim).
void expand_signs(int head_dim, int n_tiles, const std::uint8_t* signs, std::uint8_t* bytes);

// best[row] = the largest of scale of the token * (2 * dot - digit_sums[row]) * gains[row] + bias.
struct BestOfChunk {
  const std::int32_t* dots;  // [row][64]
  const std::uint16_t* scales;
  int n_tokens;
  int n_rows;
  const std::int32_t* digit_sums;
  const float* gains;
  const float* const* bias;  // [row] -> [64]; null: nothing is masked
  const float* slopes;
  float* best;  // rows are best_stride apart
  std::size_t best_stride;
};
void best_of_chunk(const BestOfChunk& work);

}  // namespace slipstream::turbo
