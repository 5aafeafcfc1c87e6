// The kernels by which a query finds the chunks that it needs: they estimate its scores from the
// signs of the keys (kv_buffer/key_signs.h).
//
//   query --make_sign_tables--> tables, signs --sign_dots--> sums --best_of_chunk--> best estimate
//
// scan_signs does both for many chunks that nothing is hidden of.
//
// Queries look up the sums of four channels in tables of sixteen. Many at once are multiplied by AMX
// instead (amx_signs.h).
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

// The signs of a chunk that are read: some of the planes of eight channels.
struct ChunkSigns {
  const std::uint8_t* first_plane;
  std::size_t plane_bytes;                // from one plane to the next
  std::span<const std::uint16_t> planes;  // an even number
  std::ptrdiff_t ahead;                   // from this chunk to the one that is fetched meanwhile
};

// dots[row][token] = sum over the channels of the planes of sign * digit, for the 64 tokens.
struct SignDots {
  ChunkSigns signs;
  const std::int8_t* tables;  // [row][sign_table_bytes(head_dim)], of all planes
  std::size_t row_tables;     // from one row's tables to the next
  int n_rows;
  std::int32_t* dots;
};
void sign_dots(const SignDots& work);

// best[row] = the largest of dot * scale of the token * gains[row] + slopes[row] * bias
struct BestOfChunk {
  const std::int32_t* dots;    // [row][64]
  const std::uint8_t* scales;  // of 64 tokens (kv_buffer/key_signs.h)
  int n_tokens;
  int n_rows;
  const float* gains;
  const float* const* bias;  // [row] -> [64]; null, all or one: nothing is masked
  const float* slopes;
  float* best;  // rows are best_stride apart
  std::size_t best_stride;
};
void best_of_chunk(const BestOfChunk& work);

// best[row * best_stride + chunk] = what sign_dots and best_of_chunk give for the chunk
struct SignScan {
  const std::uint8_t* signs;              // the first plane of chunk 0
  std::size_t plane_bytes;                // from one plane to the next
  std::span<const std::uint16_t> planes;  // an even number
  const std::uint8_t* scales;             // those of chunk 0
  std::span<const int> chunks;            // of 64 tokens each
  const std::int8_t* tables;
  std::size_t row_tables;
  int n_rows;
  const float* gains;
  float* best;
  std::size_t best_stride;
  std::int32_t* dots;  // memory for 64 of each row
};
void scan_signs(const SignScan& work);

}  // namespace slipstream::turbo
