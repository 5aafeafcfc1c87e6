// CheckpointMemory: keeps prefixes as saved states (prefix_memory.h), for models whose state cannot
// be cut. A sequence takes over a state only where it was saved, into cells of its own.
//
// Other requests most likely share the first states of a prompt. These are saved as long as there
// is room; the state at the end of the prompt is always saved.
//
// Threads: owned by the engine's thread. Errors: none; calling save() for a state that is not held
// is a bug.
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
  mutable Checkpoints checkpoints_;  // mutable: match() counts as a use of a checkpoint
  const PackedState packed_;
  const OnKept on_kept_;
};

}  // namespace slipstream
