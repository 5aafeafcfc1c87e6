// CheckpointMemory: prefixes as saved states (prefix_memory.h), for models whose state cannot be
// cut.
//
// Threads: owned by the engine's thread. Errors: none; save() of what is not there is a bug.
#pragma once

#include "base/check.h"
#include "engine/prefixes/prefix_memory.h"
#include "engine/state/checkpoints.h"

namespace slipstream {

class CheckpointMemory final : public PrefixMemory {
 public:
  explicit CheckpointMemory(Checkpoints& checkpoints) : checkpoints_(checkpoints) {}

  [[nodiscard]] bool is_divisible() const override { return false; }
  [[nodiscard]] int n_held(Salt salt, std::span<const Token> tokens) const override {
    return checkpoints_.match(salt, tokens).n_tokens;
  }
  [[nodiscard]] Result<std::vector<std::byte>> save(Salt salt, std::span<const Token> tokens,
                                                    int /*first*/) const override {
    const Checkpoints::Match match = checkpoints_.match(salt, tokens);
    SLIP_CHECK(match.n_tokens == static_cast<int>(tokens.size()), "saves what is not held");
    return std::vector(match.state.begin(), match.state.end());
  }
  [[nodiscard]] Result<void> restore(Salt salt, std::span<const Token> tokens,
                                     const StateSlice& slice) override {
    SLIP_CHECK(slice.first == 0 && slice.end == static_cast<int>(tokens.size()), "a state is cut");
    checkpoints_.insert(salt, tokens, {slice.state.begin(), slice.state.end()});
    return {};
  }

 private:
  Checkpoints& checkpoints_;
};

}  // namespace slipstream
