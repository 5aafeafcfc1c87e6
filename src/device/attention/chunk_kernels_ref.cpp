#include "device/attention/chunk_kernels_ref.h"

#include <vector>

#include "device/codec/codebook.h"

namespace slipstream::turbo::ref {
namespace {

int level_of(int bits, bool is_fitted, std::uint8_t code) {
  if (bits == 8) return code - 128;
  return is_fitted ? fitted_i8(bits)[code] : centroids_i8(bits)[code];
}

// Calls store(token, channel, level) for each token and channel of a tile.
void for_every_level(Side side, const KeyCodes& form, const std::uint8_t* codes, auto store) {
  const TileLayout layout(side, form.classes);
  std::vector<std::uint8_t> token_codes(static_cast<std::size_t>(layout.head_dim()));
  for (int token = 0; token < kTileTokens; ++token) {
    layout.get(std::span(codes, layout.code_bytes()), token, token_codes);
    int channel = 0;
    for (const auto [bits, n_channels] : form.classes) {
      for (const int end = channel + n_channels; channel < end; ++channel) {
        store(token, channel,
              level_of(bits, form.is_fitted, token_codes[static_cast<std::size_t>(channel)]));
      }
    }
  }
}

std::size_t key_place(int tile, int token, int channel, std::size_t tile_bytes) {
  return static_cast<std::size_t>(tile) * tile_bytes +
         static_cast<std::size_t>(channel / 4 * 64 + token * 4 + channel % 4);
}

std::size_t value_place(int tile, int token, int channel) {
  const int quad = (channel / kTileTokens * kChunkTiles + tile) * 4 + token / 4;
  return static_cast<std::size_t>(quad * 64 + channel % kTileTokens * 4 + token % 4);
}

}  // namespace

void expand_keys(const KeyCodes& form, const std::uint8_t* codes, std::uint8_t* bytes) {
  for_every_level(Side::kKey, form, codes, [&](int token, int channel, int level) {
    bytes[key_place(0, token, channel, 0)] = static_cast<std::uint8_t>(level + 128);
  });
}

void expand_values(int bits, int head_dim, const std::uint8_t* codes, int tile,
                   std::int8_t* bytes) {
  for_every_level(Side::kValue, KeyCodes(one_class(bits, head_dim), false), codes,
                  [&](int token, int channel, int level) {
                    bytes[value_place(tile, token, channel)] = static_cast<std::int8_t>(level);
                  });
}

void dot_rows(const DotRows& work) {
  for (int row = 0; row < work.n_rows; ++row) {
    for (int i = 0; i < work.n_tiles * kTileTokens; ++i) {
      std::int32_t sum = 0;
      for (int channel = 0; channel < work.n_channels; ++channel) {
        sum += work.keys[key_place(i / kTileTokens, i % kTileTokens, channel, work.tile_bytes)] *
               work.rows[static_cast<std::size_t>(row) * work.row_stride +
                         static_cast<std::size_t>(channel)];
      }
      work.dots[row * kChunkTokens + i] = sum;
    }
  }
}

void weighted_sum_rows(const WeightedSumRows& work) {
  for (int row = 0; row < work.n_rows; ++row) {
    for (int channel = 0; channel < work.n_blocks * kTileTokens; ++channel) {
      std::int32_t sum = 0;
      for (int i = 0; i < work.n_tiles * kTileTokens; ++i) {
        sum += work.weights[row * kChunkTokens + i] *
               work.values[value_place(i / kTileTokens, i % kTileTokens, channel)];
      }
      work.sums[static_cast<std::size_t>(row) * work.sum_stride +
                static_cast<std::size_t>(channel)] = sum;
    }
  }
}

}  // namespace slipstream::turbo::ref
