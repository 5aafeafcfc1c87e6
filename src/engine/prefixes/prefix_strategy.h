// PrefixStrategy: how running sequences take over prefixes and leave them behind. It hides from the
// runner the difference between models whose state can be cut at any token (cell_memory.h) and
// those with recurrent state (checkpoint_memory.h).
//
// Threads: owned by the engine's thread. Errors: none; what cannot be taken over is computed.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "engine/prefixes/prefix_cache.h"
#include "engine/prefixes/prefix_memory.h"

namespace slipstream {

// What a running sequence holds.
struct Holding {
  Salt salt = {};
  SeqId seq = -1;                    // -1: not running
  int n_computed = 0;                // tokens in the cells of seq
  Lease lease = {};                  // of the tokens that are also in a cached prefix
  std::size_t checkpoint_bytes = 0;  // of states saved within the prompt
  std::vector<int> boundaries = {};  // GenerateRequest::boundaries

  // Cells that no cached prefix shares.
  [[nodiscard]] int n_private() const { return seq < 0 ? 0 : n_computed - lease.n_shared(); }
};

class PrefixStrategy : public PrefixMemory {
 public:
  // Called with a prefix that later requests may use; the disk tier keeps it, and for good if other
  // conversations begin with it.
  using OnKept = std::function<void(Salt, std::span<const Token>, bool begins_others)>;

  // How many of a waiting sequence's tokens it could take over.
  [[nodiscard]] virtual Match find(Salt salt, std::span<const Token> tokens) = 0;
  // Takes over the first n_tokens tokens. Returns false on failure; the sequence is then empty.
  // REQUIRES: n_tokens is what find() gave, or less.
  [[nodiscard]] virtual bool take_over(Holding& holding, std::span<const Token> tokens,
                                       int n_tokens) = 0;
  // Lets others share what has been computed of a prompt of n_prompt tokens.
  virtual void share(Holding& holding, std::span<const Token> computed, int n_prompt) = 0;
  // The number of computed tokens at which share() should be called next; 0: any.
  [[nodiscard]] virtual int next_share(const Holding& holding, int n_computed,
                                       int n_prompt) const = 0;
  // The sequence stops running. What it has computed stays as a prefix until room is needed.
  virtual void release(Holding& holding, std::span<const Token> computed) = 0;
  // Cells of cached prefixes that no other running sequence uses.
  [[nodiscard]] virtual int n_exclusive(const Holding& holding) const = 0;
};

}  // namespace slipstream
