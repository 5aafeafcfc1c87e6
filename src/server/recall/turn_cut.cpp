#include "server/recall/turn_cut.h"

#include <algorithm>

#include "server/recall/message_text.h"

namespace slipstream {
namespace {

bool is_system(const Json& message) {
  return is_said_by(message, "system") || is_said_by(message, "developer");
}

std::size_t n_calls_of(const Json& message) {
  const Json* calls = member(message, "tool_calls");
  return calls != nullptr && calls->is_array() ? calls->size() : 0;
}

}  // namespace

Turns turns_of(const Json& messages) {
  Turns turns;
  while (turns.n_front < messages.size() && is_system(messages[turns.n_front])) ++turns.n_front;
  std::size_t n_open = 0;  // calls without a result
  for (std::size_t i = turns.n_front; i < messages.size(); ++i) {
    const Json& message = messages[i];
    if (is_said_by(message, "assistant")) n_open = n_calls_of(message);
    if (is_said_by(message, "tool") && n_open > 0) --n_open;
    const bool begins_turn = is_said_by(message, "user") && n_open == 0;
    if (begins_turn || turns.begins.empty()) turns.begins.push_back(i);
  }
  return turns;
}

void TurnCut::add(std::size_t n_tokens) {
  turns_.back() += n_tokens;
  n_tokens_ += n_tokens;
  const std::size_t n_reserved = n_dropped_ == 0 ? 0 : n_reserved_;
  if (n_tokens_ + n_reserved <= n_tokens_max_) return;
  const std::size_t n_kept_max = n_tokens_max_ / 2;
  while (n_tokens_ > n_kept_max && n_dropped_ + 1 < turns_.size())
    n_tokens_ -= turns_[n_dropped_++];
}

void TurnCut::add_recalled(std::size_t n_tokens) {
  turns_.back() += n_tokens;
  n_tokens_ += n_tokens;
}

}  // namespace slipstream
