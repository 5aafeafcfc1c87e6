#include "device/attention/amx.h"

#include <cstddef>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace slipstream::turbo {
namespace {

// Tile registers. Keys and values use different ones, because their numbers of rows may differ.
// More registers for either made no difference (docs/benchmarks.md).
//          results  rows  second operand
//   keys     0       4     7
//   values   2, 3    5     6
TileConfig config_for(const AmxShape& shape) {
  TileConfig config;
  for (const int tile : {0, 2, 3, 4, 5, 6, 7}) config.row_bytes[tile] = 64;
  const auto key_rows = static_cast<std::uint8_t>(shape.key_rows);
  const auto value_rows = static_cast<std::uint8_t>(shape.value_rows);
  config.n_rows[0] = config.n_rows[4] = key_rows;
  config.n_rows[2] = config.n_rows[3] = config.n_rows[5] = value_rows;
  const bool narrow = shape.key_part_channels <= 32;
  config.row_bytes[4] = narrow ? 32 : 64;
  config.n_rows[7] = narrow ? 8 : 16;
  config.n_rows[6] = 16;
  return config;
}

}  // namespace

AmxScope::AmxScope(bool enabled, const AmxShape& shape) : scope_(enabled, config_for(shape)) {}

#if defined(__x86_64__)

constexpr std::size_t kResultStride = kChunkTokens * sizeof(std::int32_t);

#define SLIP_AMX __attribute__((target("amx-int8,amx-tile")))

SLIP_AMX void amx_dot_rows(const DotRows& work) {
  for (int row = 0; row < work.n_rows; row += kAmxRows) {
    const std::int8_t* rows = work.rows + static_cast<std::size_t>(row) * work.row_stride;
    std::int32_t* dots = work.dots + static_cast<std::ptrdiff_t>(row) * kChunkTokens;
    for (int tile = 0; tile < work.n_tiles; ++tile) {
      const std::uint8_t* keys = work.keys + static_cast<std::size_t>(tile) * work.tile_bytes;
      _tile_zero(0);
      for (int channel = 0; channel < work.n_channels; channel += 64) {
        _tile_loadd(4, rows + channel, work.row_stride);
        _tile_loadd(7, keys + channel * kTileTokens, 64);
        _tile_dpbsud(0, 4, 7);
      }
      _tile_stored(0, dots + tile * kTileTokens, kResultStride);
    }
  }
}

SLIP_AMX void amx_weighted_sum_rows(const WeightedSumRows& work) {
  constexpr std::size_t kBlockBytes = std::size_t{kChunkTokens} * kTileTokens;
  const std::size_t stride = work.sum_stride * sizeof(std::int32_t);
  for (int row = 0; row < work.n_rows; row += kAmxRows) {
    _tile_loadd(5, work.weights + static_cast<std::size_t>(row) * kChunkTokens, kChunkTokens);
    std::int32_t* sums = work.sums + static_cast<std::size_t>(row) * work.sum_stride;
    const std::int8_t* values = work.values;
    int block = 0;
    for (; block + 2 <= work.n_blocks; block += 2) {
      _tile_zero(2);
      _tile_zero(3);
      _tile_loadd(6, values, 64);
      _tile_dpbusd(2, 5, 6);
      _tile_loadd(6, values + kBlockBytes, 64);
      _tile_dpbusd(3, 5, 6);
      _tile_stored(2, sums, stride);
      _tile_stored(3, sums + kTileTokens, stride);
      values += 2 * kBlockBytes;
      sums += std::ptrdiff_t{2} * kTileTokens;
    }
    if (block < work.n_blocks) {
      _tile_zero(2);
      _tile_loadd(6, values, 64);
      _tile_dpbusd(2, 5, 6);
      _tile_stored(2, sums, stride);
    }
  }
}

#else  // other architectures: the kernels are never called, because has_amx() is false

void amx_dot_rows(const DotRows& work) { dot_rows(work); }
void amx_weighted_sum_rows(const WeightedSumRows& work) { weighted_sum_rows(work); }

#endif

}  // namespace slipstream::turbo
