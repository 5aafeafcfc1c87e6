// CellReserve: keeps the cells of sequences that generate apart, from each other and from those of
// a prompt that is computed beside them.
//
// libllama gives out cells in the order of a batch's tokens. Four sequences that generate would lie
// cell by cell between each other, and between them pieces of a prompt, until every chunk of the
// cache holds something of everybody, and attention, which skips chunks that a row sees nothing of,
// could skip none: each would pay for all. So a run of cells is held back here, under a sequence of
// its own, with a block of it for each sequence that generates, and each step gets one cell of each
// block back: libllama takes the free cells in order, and the batch's tokens are in the order of
// the blocks. Where that fails nothing is wrong, only slower.
//
// Threads: owned by the engine's thread. Errors: none.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/prefixes/cells.h"
#include "engine/state/packed_state.h"

namespace slipstream {

class CellReserve {
 public:
  static constexpr int kCells = 256;

  // seq: its own. scratch_seq: holds cells only during a call.
  CellReserve(Model& model, Cells& cells, SeqId seq, SeqId scratch_seq);

  // Before a step in which these generate a token each, in this order and before any prompt, and
  // which may take a reserve of n_cells_free. donor: one that has computed at least kCells tokens.
  void make_way(std::span<const SeqId> generating, int n_cells_free, SeqId donor);
  void drop();
  [[nodiscard]] int n_cells() const { return n_held_; }

 private:
  struct Block {
    SeqId owner;
    int next;  // position of its first cell that is still held
    int end;
  };

  // A block with a cell left for each, in their order; empty where one has none.
  [[nodiscard]] std::vector<Block*> blocks_of(std::span<const SeqId> generating);
  void refill(std::span<const SeqId> generating, SeqId donor);

  Model& model_;
  Cells& cells_;
  const SeqId seq_;
  const SeqId scratch_seq_;
  const PackedState packed_;
  std::vector<std::byte> filler_;  // a state of kCells: something has to be in them
  std::vector<Block> blocks_;
  int n_held_ = 0;
};

}  // namespace slipstream
