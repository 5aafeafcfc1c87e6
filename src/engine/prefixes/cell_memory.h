// CellMemory: prefixes in the cells of the KV cache (prefix_memory.h), as the prefix cache knows
// them. Takes two sequence ids of its own, which hold cells only during a call.
//
// Threads: owned by the engine's thread. Errors: as of prefix_memory.h.
#pragma once

#include <functional>

#include "engine/model/model.h"
#include "engine/prefixes/cells.h"
#include "engine/prefixes/prefix_cache.h"
#include "engine/prefixes/prefix_memory.h"
#include "engine/state/packed_state.h"

namespace slipstream {

class CellMemory final : public PrefixMemory {
 public:
  static constexpr int kSeqs = 2;

  // n_free_cells: how many cells nobody holds at the moment.
  CellMemory(Model& model, Cells& cells, PrefixCache& prefixes, SeqId first_seq,
             std::function<int()> n_free_cells);

  [[nodiscard]] bool is_divisible() const override { return true; }
  [[nodiscard]] int n_held(Salt salt, std::span<const Token> tokens) const override;
  [[nodiscard]] Result<std::vector<std::byte>> save(Salt salt, std::span<const Token> tokens,
                                                    int first) const override;
  [[nodiscard]] Result<void> restore(Salt salt, std::span<const Token> tokens,
                                     const StateSlice& slice) override;

 private:
  [[nodiscard]] Result<void> place(Lease& lease, std::span<const Token> tokens, int n_held,
                                   const StateSlice& slice);

  Model& model_;
  Cells& cells_;
  PrefixCache& prefixes_;
  const SeqId slice_seq_;
  const SeqId path_seq_;
  const std::function<int()> n_free_cells_;
  const PackedState packed_;
};

}  // namespace slipstream
