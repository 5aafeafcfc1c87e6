// CellReserve: keeps the cells of generating sequences apart from each other and from those of a
// prompt that is computed beside them.
//
// libllama assigns cells in the order of a batch's tokens. The cells of generating sequences and of
// prompts would interleave until every chunk of the cache held cells of all of them. Attention
// skips chunks that a row cannot see; then it could skip none, and each sequence would pay for all.
// So the reserve holds a run of cells under a sequence of its own, with one block per generating
// sequence. Before each step it frees as many cells of each block as its sequence computes tokens.
// libllama takes free cells in order, and the batch's tokens are in the order of the blocks. If this
// fails, only speed is lost. Cells of drafted tokens that were refused are free already: the next step
// takes them first.
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

  // seq: the reserve's own sequence. scratch_seq: holds cells only during a call.
  CellReserve(Model& model, Cells& cells, SeqId seq, SeqId scratch_seq);

  struct Need {
    SeqId seq;
    int n_cells;
  };
  // Call before a step in which `generating` compute so many tokens, in this order and before any
  // prompt. n_cells_free: cells that a new reserve may take. donor: a sequence with at least kCells
  // computed tokens.
  void make_way(std::span<const Need> generating, int n_cells_free, SeqId donor);
  // The sequence has given up its last n_cells cells.
  void note_cut(SeqId seq, int n_cells);
  void drop();
  [[nodiscard]] int n_cells() const { return n_held_; }

 private:
  struct Block {
    SeqId owner;
    int next;  // position of the first cell still held
    int end;
    int n_cut = 0;  // cells before `next` that are free again
  };

  // For each sequence, in order, a block with enough cells left. Empty if one of them has none.
  [[nodiscard]] std::vector<Block*> blocks_of(std::span<const Need> generating);
  void refill(std::span<const Need> generating, SeqId donor);

  Model& model_;
  Cells& cells_;
  const SeqId seq_;
  const SeqId scratch_seq_;
  const PackedState packed_;
  std::vector<std::byte> filler_;  // a state of kCells cells: they must hold something
  std::vector<Block> blocks_;
  int n_held_ = 0;
};

}  // namespace slipstream
