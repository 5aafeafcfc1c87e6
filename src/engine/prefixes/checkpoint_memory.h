// CheckpointMemory: prefixes as saved states (prefix_memory.h), for models whose state cannot be
// cut: it is taken over only where it was saved, into cells of the sequence's own.
//
// The first states of a prompt are those that others are likely to share: they are saved as long as
// there is room, and the one at its end always.
//
// Threads: owned by the engine's thread. Errors: none; save() of what is not there is a bug.
#pragma once

#include "engine/model/model.h"
#include "engine/prefixes/cells.h"
#include "engine/prefixes/prefix_strategy.h"
#include "engine/state/checkpoints.h"
#include "engine/state/packed_state.h"

namespace slipstream {

class CheckpointMemory final : public PrefixStrategy {
 public:
  CheckpointMemory(Model& model, Cells& cells, std::size_t bytes_max, OnKept on_kept);

  [[nodiscard]] bool is_divisible() const override { return false; }
  [[nodiscard]] int n_held(Salt salt, std::span<const Token> tokens) const override;
  [[nodiscard]] Result<std::vector<std::byte>> save(Salt salt, std::span<const Token> tokens,
                                                    int first) const override;
  [[nodiscard]] Result<void> restore(Salt salt, std::span<const Token> tokens,
                                     const StateSlice& slice) override;

  [[nodiscard]] Match find(Salt salt, std::span<const Token> tokens) override;
  [[nodiscard]] bool take_over(Holding& holding, std::span<const Token> tokens,
                               int n_tokens) override;
  void share(Holding& holding, std::span<const Token> computed, int n_prompt) override;
  [[nodiscard]] int next_share(int n_computed, int n_prompt) const override {
    return next_checkpoint(n_computed, n_prompt);
  }
  void release(Holding& holding, std::span<const Token> computed) override;
  [[nodiscard]] int n_exclusive(const Holding& /*holding*/) const override { return 0; }

 private:
  std::size_t save_checkpoint(const Holding& holding, std::span<const Token> computed);

  Model& model_;
  Cells& cells_;
  mutable Checkpoints checkpoints_;  // asking for one counts as a use of it
  const PackedState packed_;
  const OnKept on_kept_;
};

}  // namespace slipstream
