// PrefixMemory: where computed prefixes live in memory, as the disk sees it. For most models in
// cells, of which any stretch of tokens can be taken; for those with recurrent state as saved
// states, which are whole or useless.
//
// Threads: owned by the engine's thread. Errors: as of packed_state.h; kOverloaded where no cells
// are free.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "engine/state/state_slices.h"

namespace slipstream {

class PrefixMemory {
 public:
  PrefixMemory() = default;
  PrefixMemory(const PrefixMemory&) = delete;
  PrefixMemory& operator=(const PrefixMemory&) = delete;
  virtual ~PrefixMemory() = default;

  // Whether a state of [first, end) means something by itself.
  [[nodiscard]] virtual bool is_divisible() const = 0;
  // The longest prefix of the tokens that is held.
  [[nodiscard]] virtual int n_held(Salt salt, std::span<const Token> tokens) const = 0;
  // The state of the last tokens from `first` on; all of them are held.
  [[nodiscard]] virtual Result<std::vector<std::byte>> save(Salt salt,
                                                            std::span<const Token> tokens,
                                                            int first) const = 0;
  // Holds all of the tokens from now on: those before the slice it does already. What the slice has
  // beyond them is left out.
  [[nodiscard]] virtual Result<void> restore(Salt salt, std::span<const Token> tokens,
                                             const StateSlice& slice) = 0;
};

}  // namespace slipstream
