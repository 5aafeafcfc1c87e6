// CellReserve: keeps the cells of sequences that generate apart from those of a prompt that is
// computed beside them.
//
// libllama gives out cells in the order of a batch's tokens. A step of four generated tokens and
// twelve of a prompt would mix them, step after step, until every chunk of the cache holds
// something of everybody, and attention, which skips chunks that a row sees nothing of, could skip
// none. So a run of cells is held back here, under a sequence of its own, and each step gets as
// many of them back as it generates tokens: libllama takes the lowest free cells first. Where that
// fails nothing is wrong, only slower.
//
// Threads: owned by the engine's thread. Errors: none.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/cells.h"
#include "engine/model.h"
#include "engine/packed_state.h"

namespace slipstream {

class CellReserve {
 public:
  static constexpr int kCells = 256;

  // seq: its own. scratch_seq: holds cells only during a call.
  CellReserve(Model& model, Cells& cells, SeqId seq, SeqId scratch_seq);

  // Before a step with prompts in it, which generates so many tokens and may take a reserve of
  // n_cells_free. donor: a sequence that has computed at least kCells tokens.
  void make_way(int n_generating, int n_cells_free, SeqId donor);
  void drop();
  [[nodiscard]] int n_cells() const { return n_held_; }

 private:
  void refill(SeqId donor);

  Model& model_;
  Cells& cells_;
  const SeqId seq_;
  const SeqId scratch_seq_;
  const PackedState packed_;
  std::vector<std::byte> filler_;  // a state of kCells: something has to be in them
  int n_held_ = 0;
};

}  // namespace slipstream
