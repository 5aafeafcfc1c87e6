// scan_signs on AMX matrix tiles, for many queries: sixteen tokens by sixteen queries at a time, so
// that the largest estimate of each query is found without moving numbers between lanes.
//
// Threads: thread-safe; each thread has its own tile registers. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace slipstream::turbo {

// The signs of 64 channels make one product.
inline constexpr std::size_t kPlanesPerTile = 8;
// The digits of sixteen queries for these channels: [channel / 4][query][channel % 4].
inline constexpr std::size_t kDigitTileBytes = 1024;

constexpr std::size_t n_digit_tiles(std::size_t n_planes) {
  return (n_planes + kPlanesPerTile - 1) / kPlanesPerTile;
}

// Puts 8-bit digits of n_rows queries, row_stride apart, into [query / 16][tile], with zeroes for
// queries and planes that there are not.
// REQUIRES: tiles have room for kDigitTileBytes * n_digit_tiles(planes) for each sixteen rows.
void make_digit_tiles(const std::int8_t* digits, std::size_t row_stride, int n_rows,
                      std::span<const std::uint16_t> planes, std::int8_t* tiles);

// best[row * best_stride + chunk] = the largest of sum of sign * digit * scale of the token
//                                   * gains[row]
// REQUIRES: this thread has an AmxScope (amx.h) for kAmxRows rows and more than 32 channels.
struct AmxSignScan {
  const std::uint8_t* signs;              // the first plane of chunk 0 (sign_kernels.h)
  std::size_t plane_bytes;                // from one plane to the next
  std::span<const std::uint16_t> planes;  // at most kHeadDimMax / 8
  const std::uint8_t* scales;             // those of chunk 0
  std::span<const int> chunks;            // of 64 tokens each
  const std::int8_t* digit_tiles;
  int n_rows;
  const float* gains;
  float* best;
  std::size_t best_stride;
};
void amx_scan_signs(const AmxSignScan& work);

}  // namespace slipstream::turbo
