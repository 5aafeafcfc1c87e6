#include "device/attention/tile_kernels_ref.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "device/codec/vector_codec.h"

namespace slipstream::turbo::ref {

void expand_tile(Side side, int bits, std::span<const std::uint8_t> codes,
                 std::span<const std::uint16_t> scales, std::span<float> tile) {
  const std::size_t head_dim = tile.size() / kTileTokens;
  const TileLayout layout(side, bits, static_cast<int>(head_dim));
  const auto per_scale =
      static_cast<std::size_t>(channels_per_scale(side, bits, static_cast<int>(head_dim)));
  std::vector<std::uint8_t> token_codes(head_dim);
  std::vector<float> vector(head_dim);
  for (std::size_t token = 0; token < kTileTokens; ++token) {
    layout.get(codes, static_cast<int>(token), token_codes);
    for (std::size_t first = 0; first < head_dim;) {
      const std::size_t n = std::min(per_scale, head_dim - first);
      decode(bits, scales[first / per_scale * kTileTokens + token],
             std::span<const std::uint8_t>(token_codes).subspan(first, n),
             std::span(vector).subspan(first, n));
      first += n;
    }
    for (std::size_t channel = 0; channel < head_dim; ++channel) {
      const auto [slot, position] =
          place_in_tile(side, static_cast<int>(token), static_cast<int>(channel));
      tile[static_cast<std::size_t>(position * kTileTokens + slot)] = vector[channel];
    }
  }
}

void score_tile(std::span<const float> query, std::span<const float> tile,
                std::span<float, kTileTokens> scores) {
  for (std::size_t token = 0; token < kTileTokens; ++token) {
    double sum = 0;
    for (std::size_t channel = 0; channel < query.size(); ++channel) {
      sum += static_cast<double>(query[channel]) *
             static_cast<double>(tile[channel * kTileTokens + token]);
    }
    scores[token] = static_cast<float>(sum);
  }
}

void accumulate_tile(std::span<const float, kTileTokens> weights, std::span<const float> tile,
                     std::span<float> output) {
  for (std::size_t channel = 0; channel < output.size(); ++channel) {
    const std::size_t block = channel / kTileTokens * kTileTokens;
    double sum = static_cast<double>(output[channel]);
    for (std::size_t token = 0; token < kTileTokens; ++token) {
      sum += static_cast<double>(weights[token]) *
             static_cast<double>(tile[(block + token) * kTileTokens + channel % kTileTokens]);
    }
    output[channel] = static_cast<float>(sum);
  }
}

float exp_tile(std::span<float, kTileTokens> x, float max) {
  float sum = 0;
  for (float& value : x) {
    value = std::exp(value - max);
    sum += value;
  }
  return sum;
}

}  // namespace slipstream::turbo::ref
