#include "engine/prefixes/cell_reserve.h"

#include <algorithm>
#include <utility>

namespace slipstream {

CellReserve::CellReserve(Model& model, Cells& cells, SeqId seq, SeqId scratch_seq)
    : model_(model),
      cells_(cells),
      seq_(seq),
      scratch_seq_(scratch_seq),
      packed_(!model.is_spread()) {}

void CellReserve::make_way(std::span<const Need> generating, int n_cells_free, SeqId donor) {
  if (generating.empty() || generating.size() > kCells) return drop();
  std::vector<Block*> blocks = blocks_of(generating);
  if (blocks.empty()) {
    drop();
    if (n_cells_free < kCells) return;
    refill(generating, donor);
    if (n_held_ == 0) return;
    blocks = blocks_of(generating);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    Block& block = *blocks[i];
    const int n_cut = std::min(block.n_cut, generating[i].n_cells);
    const int n_freed = generating[i].n_cells - n_cut;
    if (n_freed > 0) cells_.remove(seq_, block.next, block.next + n_freed);
    block.next += n_freed;
    block.n_cut -= n_cut;
    n_held_ -= n_freed;
  }
}

void CellReserve::note_cut(SeqId seq, int n_cells) {
  const auto block = std::ranges::find(blocks_, seq, &Block::owner);
  if (block != blocks_.end()) block->n_cut += n_cells;
}

std::vector<CellReserve::Block*> CellReserve::blocks_of(std::span<const Need> generating) {
  std::vector<Block*> found;
  auto block = blocks_.begin();
  for (const auto& [seq, n_cells] : generating) {
    block = std::find_if(block, blocks_.end(), [&](const Block& b) { return b.owner == seq; });
    if (block == blocks_.end() || block->end - block->next + block->n_cut < n_cells) return {};
    found.push_back(&*block++);
  }
  return found;
}

void CellReserve::drop() {
  if (n_held_ > 0) cells_.remove(seq_, 0, kEndOfSequence);
  n_held_ = 0;
  blocks_.clear();
}

void CellReserve::refill(std::span<const Need> generating, SeqId donor) {
  if (filler_.empty()) {
    cells_.copy(donor, scratch_seq_, 0, kCells);
    Result<std::vector<std::byte>> state = packed_.save(model_.context(), scratch_seq_);
    cells_.remove(scratch_seq_, 0, kEndOfSequence);
    if (state) filler_ = std::move(*state);
  }
  // restore() fails unless kCells contiguous cells are free.
  if (filler_.empty() || !packed_.restore(model_.context(), seq_, filler_)) return;
  n_held_ = kCells;
  const int block_cells = kCells / static_cast<int>(generating.size());
  for (const auto& [seq, n_cells] : generating) {
    const int first = static_cast<int>(blocks_.size()) * block_cells;
    blocks_.push_back({.owner = seq, .next = first, .end = first + block_cells});
  }
}

}  // namespace slipstream
