// PieceScratch: the memory in which a thread computes a piece. It is kept from piece to piece.
//
// Threads: one owner. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/attention/cache_side.h"
#include "device/attention/mask_chunks.h"
#include "device/attention/scratch.h"

namespace slipstream::turbo {

struct QuantisedQueries {
  void resize(const CacheSide& keys, std::size_t n_queries);

  Scratch<std::int8_t> digits;
  Scratch<std::int32_t> offsets;
  Scratch<float> scales;
};

// Each array is rows of one stride (scratch.h).
//
//   name            type  rows x stride             what for
//   vectors         f32   query x key_dim           queries of the op, later rotated in place
//   fitted_vectors  f32   query x key_dim           queries in the basis of fitted keys
//   coded.digits    i8    query * digit x 64 * n    quantised queries, zeroes behind key_dim
//   coded.offsets   i32   query x key part          -128 * sum of digits (key bytes: level + 128)
//   coded.scales    f32   query x 1                 query = scale * digits
//   rotated.*             as coded                  for the 8-bit copies of fitted keys
//   centre_scores   f32   query x 1                 query . centre of the keys
//   slopes          f32   query x 1                 slopes of ALiBi
//
//   sign_tables     i8    query x 4 * key_dim       sums of its digits (sign_kernels.h)
//   table_gains     f32   query x 1                 score = gain * sum * scale of the key's signs
//   digit_tiles     i8    1 x 1024 * n              coded.digits for AMX (amx_signs.h)
//   digit_gains     f32   query x 1                 as table_gains, for coded.digits
//   estimates       f32   query x chunks            the largest estimated score of each chunk
//   visibility      u8    query x chunks            of what it has chosen
//
//   key_bytes       u8    1 x 64 * key_dim          keys of a chunk (chunk_kernels.h: expand_keys)
//   key_scales      f32   tile x 16 * key part      [part][token] of a tile
//   value_bytes     i8    block x 16 * 64           values of a chunk, 16 channels to a block
//   value_scales    f32   tile x 16 * value part    [part][token] of a tile
//   bias            f32   query x 64                mask of a chunk that is partially visible
//   scores          f32   query x 64                scores of plain keys; weights of plain values
//   products        i32   key part x part_stride    integer scores, [query][digit][64]; then
//                                                   weighted sums, [query][digit][channel]
//   weights         u8    value part x part_stride  quantised weights, [query][digit][64]
//   weight_scales   f32   value part x query        weight = scale * digits
//   rescale         f32   query x 1                 the factor of a chunk for earlier sums
//
//   max             f32   query x 1                 largest score so far, in units of log 2
//   weight_sums     f32   query x 16                softmax sums so far, by slot of a tile
//   total_weights   f32   query x 1                 the sum over all slots, at the end
//   outputs         f32   query x value_dim         weighted sum of values so far
//
// products, weights and weight_scales belong to one run of queries and begin with its first query.
// AMX reads and writes rows in groups of 16, so there is memory for whole groups: part_stride is
// 64 * (2 * queries, rounded up to 16), and digits have 16 more rows, because a run may begin at
// any query. AMX may read the kReadPast bytes behind key_bytes.
struct PieceScratch {
  // The scratch of the calling thread.
  [[nodiscard]] static PieceScratch& of_thread(std::size_t idx = 0);

  void resize(const CacheSides& sides, std::size_t n_queries);
  [[nodiscard]] std::size_t part_stride() const { return weights.stride(); }

  // --- queries
  Scratch<float> vectors;
  Scratch<float> fitted_vectors;
  QuantisedQueries coded;
  QuantisedQueries rotated;
  Scratch<float> centre_scores;
  Scratch<float> slopes;
  // --- the choice of chunks
  Scratch<std::int8_t> sign_tables;
  Scratch<float> table_gains;
  Scratch<std::int8_t> digit_tiles;
  Scratch<float> digit_gains;
  Scratch<float> estimates;
  Scratch<Visibility> visibility;
  // --- a chunk
  Scratch<std::uint8_t> key_bytes;
  Scratch<float> key_scales;
  Scratch<std::int8_t> value_bytes;
  Scratch<float> value_scales;
  Scratch<float> bias;
  Scratch<float> scores;
  Scratch<std::int32_t> products;
  Scratch<std::uint8_t> weights;
  Scratch<float> weight_scales;
  Scratch<float> rescale;
  // --- all chunks so far
  Scratch<float> max;
  Scratch<float> weight_sums;
  Scratch<float> total_weights;
  Scratch<float> outputs;
};

}  // namespace slipstream::turbo
