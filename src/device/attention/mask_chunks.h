// MaskChunks: for each row of an attention mask, which chunks of 64 cells it sees. Made once for a
// batch and used by every layer and head.
//
// Threads: make() by one thread, then read by all.
#pragma once

#include <ggml.h>

#include <cstdint>
#include <vector>

namespace slipstream::turbo {

enum class Sight : std::uint8_t { kNothing, kEverything, kSome };

class MaskChunks {
 public:
  // mask: f16, [cells, rows, heads, streams], null: everything is seen. Keeps its memory.
  void make(const ggml_tensor* mask, std::int64_t n_cells, std::int64_t n_rows);

  [[nodiscard]] int n_chunks() const { return n_chunks_; }
  [[nodiscard]] std::int64_t n_heads() const { return mask_ == nullptr ? 1 : mask_->ne[2]; }
  // Of a row of one of the mask's heads and streams (whose number divides that of the op's).
  [[nodiscard]] const Sight* row(std::int64_t row, std::int64_t head, std::int64_t stream) const {
    if (mask_ == nullptr) return sights_.data();
    const std::int64_t plane = stream % mask_->ne[3] * mask_->ne[2] + head % mask_->ne[2];
    return sights_.data() + (plane * mask_->ne[1] + row) * n_chunks_;
  }

 private:
  const ggml_tensor* mask_ = nullptr;
  int n_chunks_ = 0;
  std::vector<Sight> sights_;
};

}  // namespace slipstream::turbo
