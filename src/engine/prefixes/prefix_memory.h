// PrefixMemory: where computed prefixes live in memory, as the disk tier sees it. Most models keep
// them in cells, from which any range of tokens can be taken. Models with recurrent state keep them
// as saved states, which can only be used whole.
//
// Threads: owned by the engine's thread.
// Errors:  as in packed_state.h; kOverloaded if no cells are free.
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

  // Whether the state of a range [first, end) can be used by itself.
  [[nodiscard]] virtual bool is_divisible() const = 0;
  // Length of the longest prefix of the tokens that is held.
  [[nodiscard]] virtual int n_held(Salt salt, std::span<const Token> tokens) const = 0;
  // The state of the tokens from `first` to the end. REQUIRES: all of the tokens are held.
  [[nodiscard]] virtual Result<std::vector<std::byte>> save(Salt salt,
                                                            std::span<const Token> tokens,
                                                            int first) const = 0;
  // Afterwards all of the tokens are held. REQUIRES: those before the slice are held already.
  // Tokens of the slice beyond `tokens` are left out.
  [[nodiscard]] virtual Result<void> restore(Salt salt, std::span<const Token> tokens,
                                             const StateSlice& slice) = 0;
};

}  // namespace slipstream
