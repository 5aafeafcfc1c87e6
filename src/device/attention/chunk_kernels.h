// The kernels of attention on codes, for a chunk: 64 tokens (four tiles) of one head.
//
//   codes --expand--> bytes --dot_rows--> integer scores --softmax_chunk--> integer weights
//   codes --expand--> bytes, integer weights --weighted_sum_rows--> --accumulate_output--> output
//
// Bytes are multiplied and the products summed in 32-bit integers, which is exact. Only the other
// operand is rounded: queries and weights are quantised to 8-bit digits, one for codes of up to 4
// bits and their 8-bit copies, two for 8-bit codes. dot_rows and weighted_sum_rows treat each digit
// as a row. chunk_kernels_ref.h specifies the kernels; each runs on the best instruction set.
//
// Threads: thread-safe. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/codec/tile.h"

namespace slipstream::turbo {

// Two digits stand for hi * 2^shift + lo. Queries have signed digits, weights unsigned ones.
inline constexpr int kQueryDigitShift = 7;
inline constexpr int kWeightDigitShift = 8;
inline constexpr float kQueryMax1 = 127;
inline constexpr float kQueryMax2 = 127 * 128;
inline constexpr float kWeightMax1 = 254;  // the error carried from a rounding can make it 255
inline constexpr float kWeightMax2 = 65535;

// The bytes that a chunk's expanded tiles take. Kernels may read up to kReadPast bytes behind them,
// and behind 8-bit codes, because AMX reads whole matrix tiles.
constexpr std::size_t expanded_bytes(int head_dim) {
  return static_cast<std::size_t>(head_dim) * kChunkTokens;
}
inline constexpr std::size_t kReadPast = 1024;

// How keys are coded: their classes of channels, and whether the levels are those of fitted keys.
struct KeyCodes {
  KeyCodes() = default;
  KeyCodes(const ChannelClasses& its_classes, bool fitted)
      : classes(its_classes), is_fitted(fitted), tile_bytes(tile_code_bytes(its_classes)) {}

  ChannelClasses classes;
  bool is_fitted = false;
  std::size_t tile_bytes = 0;
  // Whether the codes need no expansion: 8-bit codes already are the expanded bytes.
  [[nodiscard]] bool is_expanded() const { return classes.n == 1 && classes.all[0].bits == 8; }
};

// Expands one tile of keys to unsigned bytes level + 128, [channel / 4][token][channel % 4].
// REQUIRES: codes have form.tile_bytes bytes, bytes have 16 for each channel.
void expand_keys(const KeyCodes& form, const std::uint8_t* codes, std::uint8_t* bytes);
// Expands one tile of values to signed bytes, the levels, at its place in the chunk:
// [channel / 16][tile][token / 4][channel % 16][token % 4].
// REQUIRES: bits is 2, 3, 4 or 8; head_dim is a multiple of 16; bytes have room for a whole chunk.
void expand_values(int bits, int head_dim, const std::uint8_t* codes, int tile, std::int8_t* bytes);

// dots[row][tile * 16 + token] = sum over `n_channels` channels of keys[tile][token] * rows[row].
// A row of dots has 64 numbers.
// REQUIRES: n_channels is a multiple of 16; 0 <= n_tiles <= 4.
struct DotRows {
  const std::uint8_t* keys;
  std::size_t tile_bytes;
  int n_tiles;
  int n_channels;
  const std::int8_t* rows;
  std::size_t row_stride;
  int n_rows;
  std::int32_t* dots;
};
void dot_rows(const DotRows& work);

// Computes dots from keys and expands values to bytes, tile by tile, so that memory loads and
// products are close enough to overlap. `parts` has one DotRows for each part of a key that has its
// own scale.
// REQUIRES: key_bytes has room for expanded_bytes(key_dim) + kReadPast, value_bytes for
// expanded_bytes(value_dim).
struct ScanChunk {
  int n_tiles;
  KeyCodes key_form;
  int key_dim;
  const std::uint8_t* key_codes;  // null: keys are plain and are not processed
  std::uint8_t* key_bytes;        // not used if key_form.is_expanded()
  const DotRows* parts;           // `keys` points into key_bytes; if expanded, into key_codes
  int n_parts;
  void (*dot)(const DotRows&);  // null: dot_rows
  int value_bits;               // 0: plain
  int value_dim;
  const std::uint8_t* value_codes;
  std::int8_t* value_bytes;
  // How many chunks further the one lies that is read next: it is fetched while this one is
  // processed.
  std::size_t chunks_ahead;
};
void scan_chunk(const ScanChunk& work);

// sums[row][channel] = sum over tokens of weights[row][token] * values[token][channel], for
// 16 * n_blocks channels.
// REQUIRES: 0 <= n_tiles <= 4.
struct WeightedSumRows {
  const std::int8_t* values;  // as expand_values() lays them out
  int n_tiles;
  int n_blocks;
  const std::uint8_t* weights;  // 64 in a row
  int n_rows;
  std::int32_t* sums;
  std::size_t sum_stride;
};
void weighted_sum_rows(const WeightedSumRows& work);

// f16 to f32.
// REQUIRES: n is a multiple of 16.
void load_scales(const std::uint16_t* halfs, int n, float* floats);

// Online softmax: turns the scores of a chunk into quantised weights, and updates the maximum and
// the sum of weights of each query.
//   score  = centre score + query scale * sum over parts of key scales * (dot + offset)
//   score  = score * scale, soft cap if any, + slope * bias
//   weight = exp(score - max)
//   digits = weight * value scales / weight scale, for each part of a value
// The weight scale of a query maps its largest weight to the largest digit. With one digit, each
// rounding error is carried to the next token of the same slot, so the sum is kept even if every
// weight is less than half a step.
// REQUIRES: n_tokens <= 64; key_scales and value_scales have 64 tokens, and those of value_scales
// are finite, because they are multiplied with weights of 0.
struct SoftmaxChunk {
  int n_queries;
  int n_tokens;  // the tokens behind them get weight 0

  const std::int32_t* dots;  // [part][query][digit][64]; null: scores are given
  std::size_t dot_part_stride;
  int n_query_digits;
  int n_key_parts;
  const float* key_scales;      // [tile][part][16]
  const std::int32_t* offsets;  // [query][part]
  const float* query_scales;    // [query]
  const float* centre_scores;   // [query]
  float* scores;                // [query][64]; overwritten with weights if values are plain

  const float* const* bias;  // [query] -> [64], null: nothing is masked
  const float* slopes;       // [query], of ALiBi; 1 without it
  float scale;               // before the soft cap, if there is one
  float softcap;             // 0: none

  float* max;          // [query], in units of log 2
  float* weight_sums;  // [query][16], slot by slot
  float* rescale;      // [query], the factor for earlier sums

  const float* value_scales;  // [tile][part][16]; null: values are plain
  int n_weight_digits;
  int n_value_parts;
  std::uint8_t* weights;  // [part][query][digit][64]
  std::size_t weight_part_stride;
  float* weight_scales;  // [part][query], of the last digit
  std::size_t weight_scale_part_stride;
};
void softmax_chunk(const SoftmaxChunk& work);
inline constexpr float kLog2E = 1.44269504088896341F;

// output[query][channel] = output * rescale[query] + weight_scales[query] * sum
// REQUIRES: n_channels is a multiple of 16.
struct AccumulateOutput {
  const std::int32_t* sums;  // [query][digit][sum_stride]
  std::size_t sum_stride;
  int n_digits;
  int n_channels;
  const float* weight_scales;
  const float* rescale;
  int n_queries;
  float* output;  // [query][output_stride]
  std::size_t output_stride;
};
void accumulate_output(const AccumulateOutput& work);

// The same for uncompressed f16 rows: scores[token] = query . key, and
// output = output * rescale + sum of weight * value.
// REQUIRES: head_dim is a multiple of 16.
void score_plain(const std::uint16_t* keys, std::size_t row_stride, int n_tokens,
                 const float* query, int head_dim, float* scores);
void accumulate_plain(const std::uint16_t* values, std::size_t row_stride, int n_tokens,
                      const float* weights, float rescale, int head_dim, float* output);

}  // namespace slipstream::turbo
