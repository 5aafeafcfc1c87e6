// The kernels by which a query finds the chunks that it needs: they estimate its scores from the
// signs of the keys (kv_buffer/key_signs.h).
//
//   query --make_sign_tables--> tables, signs --sign_dots--> sums --best_of_chunk--> best estimate
//
// A few queries look up the sums of four channels in tables of sixteen. Many at once are multiplied
// by AMX instead, with the signs expanded to bytes.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo {

// The tables of one query: for each four channels the sums of their digits with every combination
// of signs. Digits are as coarse as they are so that four sums fit into a byte: their error is an
// eighth of what signs leave open.
inline constexpr float kSignDigitMax = 7;
constexpr std::size_t sign_table_bytes(int head_dim) {
  return static_cast<std::size_t>(head_dim) * 4;
}
// Returns the scale: query = scale * digits. If the peak is 0, so are the tables.
// REQUIRES: peak is the largest magnitude of the query, or 0.
[[nodiscard]] float make_sign_tables(std::span<const float> query, float peak, std::int8_t* tables);

// dots[row][token] = sum over channels of sign * digit, for the 64 tokens of a chunk.
struct SignDots {
  const std::uint8_t* signs;
  int head_dim;
  const std::int8_t* tables;  // [row][sign_table_bytes(head_dim)]
  int n_rows;
  std::int32_t* dots;
};
void sign_dots(const SignDots& work);

// Expands the signs of a chunk to bytes 0 and 1, [tile][channel / 4][token][channel % 4].
// REQUIRES: bytes have room for expanded_bytes(head_dim).
void expand_signs(int head_dim, const std::uint8_t* signs, std::uint8_t* bytes);

// best[row] = the largest of (dot_factor * dot - digit_sums[row]) * scale of the token * gains[row]
//             + slopes[row] * bias
struct BestOfChunk {
  const std::int32_t* dots;  // [row][64]
  float dot_factor;
  const std::int32_t* digit_sums;  // null: zeroes
  const std::uint16_t* scales;     // f16, of 64 tokens
  int n_tokens;
  int n_rows;
  const float* gains;
  const float* const* bias;  // [row] -> [64]; null: nothing is masked
  const float* slopes;
  float* best;  // rows are best_stride apart
  std::size_t best_stride;
};
void best_of_chunk(const BestOfChunk& work);

}  // namespace slipstream::turbo
