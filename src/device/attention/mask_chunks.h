// MaskChunks: which chunks of 64 cells are visible to each row of an attention mask. It is made
// once for a batch and used by every layer and head.
//
// Threads: make() by one thread, then read by all. Errors: std::bad_alloc.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <vector>

#include "device/codec/f16.h"

namespace slipstream::turbo {

// How much of a chunk is visible to one row. kAll: the mask adds 0 to every score. kPartial: it
// hides some cells or adds a bias.
enum class Visibility : std::uint8_t { kNone, kAll, kPartial };
// What a mask has where it hides a cell: f16's negative infinity.
inline constexpr std::uint16_t kHidden = 0x8000U | kF16Infinity;

class MaskChunks {
 public:
  // mask: f16, [cells, rows, heads, streams]; null: every cell is visible. Memory of earlier calls
  // is reused.
  // REQUIRES: the mask has been computed and has at least n_cells cells and n_rows rows.
  void make(const ggml_tensor* mask, std::int64_t n_cells, std::int64_t n_rows);

  [[nodiscard]] int n_chunks() const { return n_chunks_; }
  [[nodiscard]] std::int64_t n_heads() const { return mask_ == nullptr ? 1 : mask_->ne[2]; }
  // The visibility of each chunk to a row. head and stream are those of the op; a mask with fewer
  // of them is repeated.
  // REQUIRES: row < the n_rows of make().
  [[nodiscard]] const Visibility* row(std::int64_t row, std::int64_t head,
                                      std::int64_t stream) const {
    if (mask_ == nullptr) return visibility_.data();
    const std::int64_t plane = stream % mask_->ne[3] * mask_->ne[2] + head % mask_->ne[2];
    return visibility_.data() + (plane * mask_->ne[1] + row) * n_chunks_;
  }

 private:
  const ggml_tensor* mask_ = nullptr;
  int n_chunks_ = 0;
  std::vector<Visibility> visibility_;
};

}  // namespace slipstream::turbo
