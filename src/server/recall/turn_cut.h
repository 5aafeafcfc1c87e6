// TurnCut: which turns of a conversation stay in its window.
//
// A turn is what a user says with all that follows until a user speaks again: answers, calls and
// their results. When the window is full the oldest turns leave it, whole, until it is half empty.
// So the turns after that stay behind the same beginning until it is full again, and the prefix
// that was computed is used again. What has left depends only on what came before: the same
// conversation with more at its end is cut at the same places.
//
// Threads: thread-compatible. Errors: none: the last turn never leaves, however long it is.
#pragma once

#include <cstddef>
#include <vector>

#include "server/json.h"

namespace slipstream {

// Where the turns of a conversation begin.
struct Turns {
  std::size_t n_front = 0;          // system messages in front, which belong to no turn
  std::vector<std::size_t> begins;  // the first message of each; the first turn may lack a user
};
// A user who speaks before all calls have their results belongs to their turn.
[[nodiscard]] Turns turns_of(const Json& messages);

class TurnCut {
 public:
  // n_reserved: room for what comes back once something has left.
  TurnCut(std::size_t n_tokens_max, std::size_t n_reserved)
      : n_tokens_max_(n_tokens_max), n_reserved_(n_reserved) {}

  void begin_turn() { turns_.push_back(0); }
  // The next message of the last turn. Turns may leave. REQUIRES: a turn has begun.
  void add(std::size_t n_tokens);
  // A text that came back into the last turn. Nothing leaves.
  void add_recalled(std::size_t n_tokens);

  [[nodiscard]] std::size_t n_dropped() const { return n_dropped_; }  // turns, the oldest ones
  [[nodiscard]] std::size_t n_tokens() const { return n_tokens_; }    // of those that stayed

 private:
  const std::size_t n_tokens_max_;
  const std::size_t n_reserved_;
  std::vector<std::size_t> turns_;  // tokens of each
  std::size_t n_dropped_ = 0;
  std::size_t n_tokens_ = 0;
};

}  // namespace slipstream
