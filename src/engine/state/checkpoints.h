// Checkpoints: saved states of models whose state cannot be cut to a shorter prefix (recurrent and
// hybrid ones): it is of use only after exactly the tokens it was saved after.
//
// Kept while their states and tokens take at most bytes_max; the least recently used go first.
//
// Threads: owned by the engine thread. Errors: none; a state that is larger than everything that
// may be kept is dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/request.h"

namespace slipstream {

// Where the state of a prompt is saved next, after so many of its tokens. Conversations part
// somewhere behind what they share, such as a system prompt: there are states at powers of two, and
// at every eighth of the prompt, rounded up to one of them, so that prompts of any length have the
// same places. The last is before the prompt's last token, which is always computed.
[[nodiscard]] int next_checkpoint(int n_computed, int n_prompt);

class Checkpoints {
 public:
  struct Match {
    int n_tokens = 0;                       // 0: there is none
    std::span<const std::byte> state = {};  // until the next insert()
  };

  explicit Checkpoints(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // The state after all of the tokens, in place of an earlier one.
  void insert(Salt salt, std::span<const Token> tokens, std::vector<std::byte> state);

  // The longest prefix with a checkpoint at its end. Counts as a use of it.
  [[nodiscard]] Match match(Salt salt, std::span<const Token> tokens);

  // Forgets the state after all of the tokens, if there is one.
  void erase(Salt salt, std::span<const Token> tokens);

  // Of these, what one prompt may take before its end: others must not lose theirs to it.
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
  Entries entries_;  // by the hash of salt and tokens; of two with the same hash the later is kept
};

}  // namespace slipstream
