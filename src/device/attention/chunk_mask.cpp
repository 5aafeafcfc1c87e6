#include "device/attention/chunk_mask.h"

#include <algorithm>
#include <cstdint>

#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo {

void read_chunk_mask(const PieceQueries& queries, const Chunk& chunk, std::size_t first,
                     std::size_t n, PieceScratch& scratch, const float** bias_rows) {
  for (std::size_t q = first; q < first + n; ++q) {
    if (queries[q].visibility[chunk.idx] == Visibility::kAll) {
      bias_rows[q] = nullptr;
    } else if (q > first && queries[q].mask == queries[q - 1].mask) {
      bias_rows[q] = bias_rows[q - 1];  // another head of the same row
    } else {
      const std::uint16_t* cells =
          queries[q].mask + static_cast<std::ptrdiff_t>(chunk.idx) * kChunkTokens;
      std::uint16_t padded_cells[kChunkTokens] = {};
      if (chunk.n_tokens < kChunkTokens) {
        std::copy_n(cells, chunk.n_tokens, padded_cells);
        cells = padded_cells;
      }
      float* bias = scratch.bias.row(q);
      load_scales(cells, kChunkTokens, bias);
      bias_rows[q] = bias;
    }
  }
}

}  // namespace slipstream::turbo
