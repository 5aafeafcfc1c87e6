#include "engine/prefixes/cell_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/format.h"

namespace slipstream {

CellMemory::CellMemory(Model& model, Cells& cells, PrefixCache& prefixes, SeqId first_seq,
                       std::function<int()> n_free_cells, OnKept on_kept)
    : model_(model),
      cells_(cells),
      prefixes_(prefixes),
      slice_seq_(first_seq),
      path_seq_(first_seq + 1),
      n_free_cells_(std::move(n_free_cells)),
      on_kept_(std::move(on_kept)),
      packed_(!model.is_spread()) {}

// libllama does not save cells that a sliding window hides from the last token of a slice, though
// tokens before that one need them.
int CellMemory::slice_tokens_max() const {
  constexpr int kSliceTokens = 256;  // few enough that saving them holds nobody up
  const int n_window = llama_model_n_swa(model_.model());
  return n_window == 0 ? kSliceTokens : std::clamp(n_window / 2, 1, kSliceTokens);
}

int CellMemory::n_held(Salt salt, std::span<const Token> tokens) const {
  return prefixes_.match(salt, tokens).n_tokens;
}

Result<std::vector<std::byte>> CellMemory::save(Salt salt, std::span<const Token> tokens,
                                                int first) const {
  prefixes_.gather(salt, tokens, slice_seq_);
  cells_.remove(slice_seq_, 0, first);
  Result<std::vector<std::byte>> state = packed_.save(model_.context(), slice_seq_);
  cells_.remove(slice_seq_, 0, kEndOfSequence);
  return state;
}

Result<void> CellMemory::restore(Salt salt, std::span<const Token> tokens,
                                 const StateSlice& slice) {
  const int n_held_before = n_held(salt, tokens);
  SLIP_CHECK(slice.first <= n_held_before, "restores what nothing leads to");
  Lease lease = prefixes_.acquire(salt, tokens, n_held_before, path_seq_);
  Result<void> placed = place(lease, tokens, n_held_before, slice);
  prefixes_.release(lease);
  return placed;
}

// Restores into a separate sequence, because libllama empties the sequence it restores into. The
// path then shares the cells that it lacks.
Result<void> CellMemory::place(Lease& lease, std::span<const Token> tokens, int n_held,
                               const StateSlice& slice) {
  const int n_missing = slice.end - slice.first - n_free_cells_();
  if (n_missing > 0 && prefixes_.evict(n_missing) < n_missing) {
    return fail(Code::kOverloaded, format_text("{} more cells would be needed", n_missing));
  }
  if (const auto restored = packed_.restore(model_.context(), slice_seq_, slice.state); !restored) {
    return restored;
  }
  llama_memory_t memory = llama_get_memory(model_.context());
  const bool is_as_said = llama_memory_seq_pos_min(memory, slice_seq_) == slice.first &&
                          llama_memory_seq_pos_max(memory, slice_seq_) == slice.end - 1;
  const int end = static_cast<int>(tokens.size());
  if (is_as_said) cells_.copy(slice_seq_, path_seq_, n_held, end);
  cells_.remove(slice_seq_, 0, kEndOfSequence);
  if (!is_as_said) return fail(Code::kCorrupt, "the state is of other positions");
  prefixes_.insert(lease, tokens);
  return {};
}

bool CellMemory::take_over(Holding& holding, std::span<const Token> tokens, int n_tokens) {
  holding.lease = prefixes_.acquire(holding.salt, tokens, n_tokens, holding.seq);
  holding.n_computed = n_tokens;
  return true;
}

void CellMemory::share(Holding& holding, std::span<const Token> computed, int /*n_prompt*/) {
  prefixes_.insert(holding.lease, computed);
}

void CellMemory::release(Holding& holding, std::span<const Token> computed) {
  prefixes_.insert(holding.lease, computed);
  prefixes_.release(holding.lease);
  on_kept_(holding.salt, computed, false);
}

}  // namespace slipstream
