#include "device/attention/mask_chunks.h"

#include <algorithm>

#include "device/attention/chunk_kernels.h"

namespace slipstream::turbo {
namespace {

Visibility visibility_of(const std::uint16_t* mask, std::int64_t n) {
  unsigned biased = 0;
  unsigned visible = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    biased |= mask[i] & 0x7fffU;  // anything but 0 and -0
    visible |= mask[i] ^ unsigned { kHidden };
  }
  if (visible == 0) return Visibility::kNone;
  return biased == 0 ? Visibility::kAll : Visibility::kPartial;
}

}  // namespace

void MaskChunks::make(const ggml_tensor* mask, std::int64_t n_cells, std::int64_t n_rows) {
  mask_ = mask;
  n_chunks_ = static_cast<int>((n_cells + kChunkTokens - 1) / kChunkTokens);
  if (mask == nullptr) {
    visibility_.assign(static_cast<std::size_t>(n_chunks_), Visibility::kAll);
    return;
  }
  visibility_.resize(static_cast<std::size_t>(n_chunks_ * mask->ne[1] * mask->ne[2] * mask->ne[3]));
  auto* next = visibility_.data();
  for (std::int64_t plane = 0; plane < mask->ne[2] * mask->ne[3]; ++plane) {
    const char* start = static_cast<const char*>(mask->data) +
                        static_cast<std::size_t>(plane % mask->ne[2]) * mask->nb[2] +
                        static_cast<std::size_t>(plane / mask->ne[2]) * mask->nb[3];
    for (std::int64_t row = 0; row < mask->ne[1]; ++row) {
      const auto* cells = reinterpret_cast<const std::uint16_t*>(
          start + static_cast<std::size_t>(row) * mask->nb[1]);
      for (std::int64_t cell = 0; cell < n_cells; cell += kChunkTokens) {
        // Rows from n_rows on are padding, which nobody asks for.
        *next++ = row < n_rows ? visibility_of(cells + cell,
                                               std::min<std::int64_t>(kChunkTokens, n_cells - cell))
                               : Visibility::kNone;
      }
    }
  }
}

}  // namespace slipstream::turbo
