#include "engine/cell_reserve.h"

#include <utility>

namespace slipstream {

CellReserve::CellReserve(Model& model, Cells& cells, SeqId seq, SeqId scratch_seq)
    : model_(model), cells_(cells), seq_(seq), scratch_seq_(scratch_seq) {}

void CellReserve::make_way(int n_generating, int n_cells_free, SeqId donor) {
  if (n_generating == 0 || n_generating > kCells) return drop();
  if (n_held_ < n_generating) {
    drop();
    if (n_cells_free < kCells) return;
    refill(donor);
    if (n_held_ == 0) return;
  }
  const int first = kCells - n_held_;
  cells_.remove(seq_, first, first + n_generating);
  n_held_ -= n_generating;
}

void CellReserve::drop() {
  if (n_held_ > 0) cells_.remove(seq_, 0, kEndOfSequence);
  n_held_ = 0;
}

void CellReserve::refill(SeqId donor) {
  if (filler_.empty()) {
    cells_.copy(donor, scratch_seq_, 0, kCells);
    Result<std::vector<std::byte>> state = packed_.save(model_.context(), scratch_seq_);
    cells_.remove(scratch_seq_, 0, kEndOfSequence);
    if (state) filler_ = std::move(*state);
  }
  // It fails where no kCells cells in a row are free.
  if (!filler_.empty() && packed_.restore(model_.context(), seq_, filler_)) n_held_ = kCells;
}

}  // namespace slipstream
