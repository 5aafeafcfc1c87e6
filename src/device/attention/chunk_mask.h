// What a mask adds to the scores of a chunk.
//
// Threads: thread-safe; the scratch has one owner. Errors: none.
#pragma once

#include <cstddef>

#include "device/attention/cache_side.h"
#include "device/attention/piece_queries.h"
#include "device/attention/piece_scratch.h"

namespace slipstream::turbo {

// Sets bias_rows[q] of the n queries from `first` on to 64 numbers in the scratch; null: all of the
// chunk is visible to the query.
void read_chunk_mask(const PieceQueries& queries, const Chunk& chunk, std::size_t first,
                     std::size_t n, PieceScratch& scratch, const float** bias_rows);

}  // namespace slipstream::turbo
