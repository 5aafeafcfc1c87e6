// Rescue: makes a conversation that is longer than its window fit, `--context-overflow rescue`.
//
// The oldest turns leave (turn_cut.h), and what they said that answers a user's message comes back
// as text before its content. What came back stays with its message as long as that stays, so that
// each prompt begins as the one before. Nothing is remembered for this: a client sends the whole
// conversation, and all of it is worked out again, from the first message on, always alike. So no
// client can see what another one said.
//
// Threads: immutable.
// Errors:  context_length_exceeded for a conversation that is too long for this, too.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/json.h"

namespace slipstream {

struct RescueOptions {
  // Tokens that may come back for one message. 0: none, old turns only leave. None: a sixteenth of
  // the context, and in a small context 256 or an eighth.
  std::optional<std::size_t> n_recalled_max = {};
};

// A prompt, as far as rescuing it needs to know.
struct RescueInput {
  Json messages;
  // Bytes at the beginning of each message that the server put there: they take room, and nobody said
  // them. Empty: none.
  std::vector<std::size_t> n_added = {};
  std::size_t n_context;
  std::size_t n_answer;  // tokens that are kept free
  std::size_t n_beside;  // tokens of the prompt that no message has, such as tools
  // The tokens of a text, about.
  std::function<Result<std::size_t>(std::string_view)> count_tokens;
  // Whether the prompt of these messages leaves room for the answer.
  std::function<bool(const Json& messages)> fits;
};

struct Rescued {
  Json messages;
  std::size_t n_turns_dropped = 0;  // the window
};

class Rescue {
 public:
  explicit Rescue(const RescueOptions& options) : options_(options) {}

  // The messages as they are if they fit. If not even the last turn fits, it is what remains: the
  // caller will find that it is too long.
  [[nodiscard]] ApiResult<Rescued> rescue(RescueInput input) const;

 private:
  const RescueOptions options_;
};

}  // namespace slipstream
