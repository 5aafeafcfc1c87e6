#include "engine/prefixes/checkpoint_memory.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace slipstream {
namespace {

constexpr int kNearTokens = 32;  // these are computed again in no time

}  // namespace

CheckpointMemory::CheckpointMemory(Model& model, Cells& cells, std::size_t bytes_max,
                                   OnKept on_kept)
    : model_(model), cells_(cells), checkpoints_(bytes_max), on_kept_(std::move(on_kept)) {}

int CheckpointMemory::n_held(Salt salt, std::span<const Token> tokens) const {
  return checkpoints_.match(salt, tokens).n_tokens;
}

Result<std::vector<std::byte>> CheckpointMemory::save(Salt salt, std::span<const Token> tokens,
                                                      int /*first*/) const {
  const Checkpoints::Match match = checkpoints_.match(salt, tokens);
  SLIP_CHECK(match.n_tokens == static_cast<int>(tokens.size()), "saves what is not held");
  return std::vector(match.state.begin(), match.state.end());
}

Result<void> CheckpointMemory::restore(Salt salt, std::span<const Token> tokens,
                                       const StateSlice& slice) {
  SLIP_CHECK(slice.first == 0 && slice.end == static_cast<int>(tokens.size()), "a state is cut");
  checkpoints_.insert(salt, tokens, {slice.state.begin(), slice.state.end()});
  return {};
}

// The last token is always computed: its logits are needed.
Match CheckpointMemory::find(Salt salt, std::span<const Token> tokens) {
  const int n_tokens = checkpoints_.match(salt, tokens.first(tokens.size() - 1)).n_tokens;
  return {.n_tokens = n_tokens, .n_evictable = n_tokens};  // restored into the sequence's own cells
}

bool CheckpointMemory::take_over(Holding& holding, std::span<const Token> tokens, int n_tokens) {
  holding.n_computed = 0;
  if (n_tokens == 0) return true;
  const std::span prefix = tokens.first(static_cast<std::size_t>(n_tokens));
  const Checkpoints::Match match = checkpoints_.match(holding.salt, prefix);
  if (match.n_tokens == n_tokens && packed_.restore(model_.context(), holding.seq, match.state)) {
    holding.n_computed = n_tokens;
    return true;
  }
  checkpoints_.erase(holding.salt, prefix);  // do not try it again
  return false;
}

int CheckpointMemory::next_share(const Holding& holding, int n_computed, int n_prompt) const {
  const int next = next_checkpoint(n_computed, n_prompt);
  const auto boundary = std::ranges::upper_bound(holding.boundaries, n_computed);
  return boundary == holding.boundaries.end() ? next : std::min(next, *boundary);
}

void CheckpointMemory::share(Holding& holding, std::span<const Token> computed, int n_prompt) {
  const auto n_computed = static_cast<int>(computed.size());
  const std::vector<int>& boundaries = holding.boundaries;
  const bool is_boundary = std::ranges::binary_search(boundaries, n_computed);
  // The end of the last message is as good as the end of the prompt, and better where a template
  // opens reasoning there that it leaves out of the next prompt.
  const bool is_late = !boundaries.empty() && n_computed - boundaries.back() <= kNearTokens;
  if (is_boundary || (n_computed == n_prompt - 1 && !is_late)) {
    save_checkpoint(holding, computed);
    on_kept_(holding.salt, computed, is_boundary && n_computed != boundaries.back());
  } else if (n_computed == next_checkpoint(n_computed - 1, n_prompt) &&
             holding.checkpoint_bytes < checkpoints_.bytes_max_within_prompt()) {
    holding.checkpoint_bytes += save_checkpoint(holding, computed);
  }
}

void CheckpointMemory::release(Holding& holding, std::span<const Token> computed) {
  save_checkpoint(holding, computed);
  cells_.remove(holding.seq, 0, kEndOfSequence);
}

std::size_t CheckpointMemory::save_checkpoint(const Holding& holding,
                                              std::span<const Token> computed) {
  if (computed.empty()) return 0;
  Result<std::vector<std::byte>> state = packed_.save(model_.context(), holding.seq);
  if (!state) return 0;  // the next request computes it again
  const std::size_t n_bytes = state->size();
  checkpoints_.insert(holding.salt, computed, std::move(*state));
  return n_bytes;
}

}  // namespace slipstream
