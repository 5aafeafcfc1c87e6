// CellMemory: keeps prefixes in cells of the KV cache (prefix_memory.h), organised by the prefix
// cache: sequences share their cells. It has two sequence ids of its own, which hold cells only
// during a call.
//
// Threads: owned by the engine's thread. Errors: as in prefix_memory.h.
#pragma once

#include <functional>

#include "engine/model/model.h"
#include "engine/prefixes/cells.h"
#include "engine/prefixes/prefix_cache.h"
#include "engine/prefixes/prefix_strategy.h"
#include "engine/state/packed_state.h"

namespace slipstream {

class CellMemory final : public PrefixStrategy {
 public:
  static constexpr int kSeqs = 2;

  // n_free_cells: returns how many cells no sequence holds.
  CellMemory(Model& model, Cells& cells, PrefixCache& prefixes, SeqId first_seq,
             std::function<int()> n_free_cells, OnKept on_kept);

  [[nodiscard]] bool is_divisible() const override { return true; }
  [[nodiscard]] int n_held(Salt salt, std::span<const Token> tokens) const override;
  [[nodiscard]] Result<std::vector<std::byte>> save(Salt salt, std::span<const Token> tokens,
                                                    int first) const override;
  [[nodiscard]] Result<void> restore(Salt salt, std::span<const Token> tokens,
                                     const StateSlice& slice) override;

  [[nodiscard]] Match find(Salt salt, std::span<const Token> tokens) override {
    return prefixes_.match(salt, tokens);
  }
  [[nodiscard]] bool take_over(Holding& holding, std::span<const Token> tokens,
                               int n_tokens) override;
  void share(Holding& holding, std::span<const Token> computed, int n_prompt) override;
  [[nodiscard]] int next_share(int /*n_computed*/, int /*n_prompt*/) const override { return 0; }
  void release(Holding& holding, std::span<const Token> computed) override;
  [[nodiscard]] int n_exclusive(const Holding& holding) const override {
    return prefixes_.n_exclusive(holding.lease);
  }

 private:
  [[nodiscard]] Result<void> place(Lease& lease, std::span<const Token> tokens, int n_held,
                                   const StateSlice& slice);

  Model& model_;
  Cells& cells_;
  PrefixCache& prefixes_;
  const SeqId slice_seq_;
  const SeqId path_seq_;
  const std::function<int()> n_free_cells_;
  const OnKept on_kept_;
  const PackedState packed_;
};

}  // namespace slipstream
