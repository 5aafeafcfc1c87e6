// Checkpoints: saved states of models whose state cannot be cut to a shorter prefix (recurrent and
// hybrid models). Such a state is usable only after exactly the tokens that it was saved after.
//
// States and tokens together take at most bytes_max; the least recently used are dropped first.
//
// Threads: owned by the engine thread. Errors: none; a state larger than bytes_max is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/request.h"

namespace slipstream {

// The number of prompt tokens after which the next state is saved. Conversations diverge somewhere
// after what they share, such as a system prompt. So states are saved at powers of two, and at
// multiples of an eighth of the prompt, rounded up to a power of two; prompts of any length then
// have the same places. The last place is before the prompt's last token, which is always computed.
[[nodiscard]] int next_checkpoint(int n_computed, int n_prompt);

class Checkpoints {
 public:
  struct Match {
    int n_tokens = 0;                       // 0: no checkpoint found
    std::span<const std::byte> state = {};  // valid until the next insert() or erase()
  };

  explicit Checkpoints(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Inserts the state after all of the tokens; it replaces an earlier one.
  void insert(Salt salt, std::span<const Token> tokens, std::vector<std::byte> state);

  // Finds the longest prefix with a checkpoint at its end. Counts as a use of it.
  [[nodiscard]] Match match(Salt salt, std::span<const Token> tokens);

  // Removes the state after all of the tokens, if there is one.
  void erase(Salt salt, std::span<const Token> tokens);

  // The part of bytes_max for states within one prompt, so that it does not evict those of others.
  [[nodiscard]] std::size_t bytes_max_within_prompt() const { return bytes_max_ / 4; }
  [[nodiscard]] std::size_t n_bytes() const { return n_bytes_; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Salt salt;
    std::vector<Token> tokens;
    std::vector<std::byte> state;
    std::int64_t last_used;  // tick

    [[nodiscard]] std::size_t n_bytes() const;
    [[nodiscard]] bool is_of(Salt of_salt, std::span<const Token> of_tokens) const;
  };
  using Entries = std::unordered_map<std::uint64_t, Entry>;

  void erase(Entries::iterator entry);

  const std::size_t bytes_max_;
  std::size_t n_bytes_ = 0;
  std::int64_t tick_ = 0;
  Entries entries_;  // by the hash of salt and tokens; if two collide, the later is kept
};

}  // namespace slipstream
