// PieceScratch: the memory that a thread computes a piece in, kept from piece to piece. Each array
// is rows of one stride (scratch.h).
//
//   name            type  rows x stride             what for
//   vectors         f32   query x key_dim           queries of the op, then rotated in place
//   fitted_vectors  f32   query x key_dim           queries in the basis of fitted keys
//   coded.digits    i8    query * digit x 64 * n    quantised queries, zeroes behind key_dim
//   coded.offsets   i32   query x key part          -128 * sum of digits (key bytes: level + 128)
//   coded.scales    f32   query x 1                 query = scale * digits
//   rotated.*             as coded                  for copies in 8 bits of fitted keys
//   centre_scores   f32   query x 1                 query . centre of the keys
//   slopes          f32   query x 1                 of ALiBi
//
//   key_bytes       u8    1 x 64 * key_dim          keys of a chunk (chunk_kernels.h: expand_keys)
//   key_scales      f32   tile x 16 * key part      [part][token] of a tile
//   value_bytes     i8    block x 16 * 64           values of a chunk, 16 channels to a block
//   value_scales    f32   tile x 16 * value part    [part][token] of a tile
//   bias            f32   query x 64                of the mask, where it shows a part of a chunk
//   scores          f32   query x 64                of plain keys; then weights of plain values
//   products        i32   key part x part_stride    integer scores, [query][digit][64]; then
//                                                   weighted sums, [query][digit][channel]
//   weights         u8    value part x part_stride  quantised weights, [query][digit][64]
//   weight_scales   f32   value part x query        weight = scale * digits
//   rescale         f32   query x 1                 what a chunk multiplies earlier sums with
//
//   max             f32   query x 1                 largest score so far, in units of log 2
//   weight_sums     f32   query x 16                of the softmax so far, by slot of a tile
//   total_weights   f32   query x 1                 the same over all slots, at the end
//   outputs         f32   query x value_dim         weighted sum of values so far
//
// products, weights and weight_scales are of one run and begin with its first query. AMX reads and
// writes rows in groups of 16, so memory is for whole groups: part_stride is 64 * (2 * queries,
// rounded up to 16), and digits have 16 rows more, because a run may begin at any query. Behind
// key_bytes are kReadPast bytes that AMX may read.
//
// Threads: one owner. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/attention/cache_side.h"
#include "device/attention/scratch.h"

namespace slipstream::turbo {

struct QuantisedQueries {
  void resize(const CacheSide& keys, std::size_t n_queries);

  Scratch<std::int8_t> digits;
  Scratch<std::int32_t> offsets;
  Scratch<float> scales;
};

struct PieceScratch {
  // The calling thread's.
  [[nodiscard]] static PieceScratch& of_thread();

  void resize(const CacheSides& sides, std::size_t n_queries);
  [[nodiscard]] std::size_t part_stride() const { return weights.stride(); }

  // --- queries
  Scratch<float> vectors;
  Scratch<float> fitted_vectors;
  QuantisedQueries coded;
  QuantisedQueries rotated;
  Scratch<float> centre_scores;
  Scratch<float> slopes;
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
