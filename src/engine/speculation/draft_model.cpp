#include "engine/speculation/draft_model.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/log.h"
#include "engine/model/llama_log.h"
#include "engine/prefixes/cells.h"
#include "engine/speculation/speculation.h"
#include "engine/speculation/vocabulary_match.h"

namespace slipstream {

int DraftModel::n_cells_for(int n_cells, int n_sequences) {
  return static_cast<int>(std::min<std::int64_t>(n_cells, kContextEach * n_sequences));
}

Result<std::unique_ptr<DraftModel>> DraftModel::create(Model draft, const Model& model) {
  if (draft.has_recurrent_state()) {
    return fail(Code::kUnsupported,
                format_text("{} cannot be a draft model: it has recurrent state, which cannot take "
                            "wrong tokens back",
                            draft.path().string()));
  }
  if (const Result<void> same = check_same_vocabulary(model.vocab(), draft.vocab()); !same) {
    return fail(same.error().code,
                format_text("{}: {}", draft.path().string(), same.error().message));
  }
  const auto n_draft_bytes = static_cast<double>(llama_model_size(draft.model()));
  const auto n_bytes = static_cast<double>(llama_model_size(model.model()));
  return std::unique_ptr<DraftModel>(new DraftModel(std::move(draft), n_draft_bytes / n_bytes));
}

DraftModel::DraftModel(Model draft, double relative_cost)
    : model_(std::move(draft)),
      relative_cost_(relative_cost),
      held_(llama_n_seq_max(model_.context())),
      batch_(llama_batch_init(static_cast<int>(llama_n_batch(model_.context())), 0, 1)) {}

DraftModel::~DraftModel() { llama_batch_free(batch_); }

int DraftModel::n_cells_used() const {
  std::size_t n = 0;
  for (const Held& one : held_) n += one.size();
  return static_cast<int>(n);
}

// The last token is always computed, for its output.
std::size_t DraftModel::n_common(SeqId seq, std::span<const Token> tokens) const {
  const Held& has = held(seq);
  const auto same = std::ranges::mismatch(has, tokens.first(tokens.size() - 1)).in1 - has.begin();
  return static_cast<std::size_t>(same);
}

std::optional<int> DraftModel::n_missing(SeqId seq, std::span<const Token> tokens) const {
  const auto n_others = static_cast<std::size_t>(n_cells_used()) - held(seq).size();
  const std::size_t n_needed = tokens.size() + SpeculationOptions::kDraftMax;
  if (n_others + n_needed > static_cast<std::size_t>(model_.n_cells())) return std::nullopt;
  return static_cast<int>(tokens.size() - n_common(seq, tokens));
}

void DraftModel::release(SeqId seq) {
  if (held(seq).empty()) return;
  held(seq).clear();
  llama_memory_seq_rm(llama_get_memory(model_.context()), seq, 0, kEndOfSequence);
}

void DraftModel::clear() {
  for (Held& one : held_) one.clear();
  llama_memory_clear(llama_get_memory(model_.context()), true);
}

void DraftModel::cut(SeqId seq, std::span<const Token> tokens) {
  const std::size_t n = n_common(seq, tokens);
  if (n == held(seq).size()) return;
  if (!llama_memory_seq_rm(llama_get_memory(model_.context()), seq, static_cast<int>(n),
                           kEndOfSequence)) {
    return release(seq);
  }
  held(seq).resize(n);
}

bool DraftModel::learn(SeqId seq, std::span<const Token> tokens, int n) {
  cut(seq, tokens);
  batch_.n_tokens = 0;
  wanted_.clear();
  bool is_done = true;
  for (int i = 0; i < n && is_done; ++i) {
    is_done = add(seq, tokens[held(seq).size()], nullptr);
  }
  is_done = is_done && compute();
  if (!is_done) release(seq);
  return is_done;
}

bool DraftModel::draft(std::span<Wish> wishes) {
  const bool is_done = compute_all(wishes);
  if (is_done) return true;
  for (Wish& wish : wishes) {
    wish.draft.clear();
    release(wish.seq);
  }
  return false;
}

bool DraftModel::compute_all(std::span<Wish> wishes) {
  batch_.n_tokens = 0;
  wanted_.clear();
  for (Wish& wish : wishes) {
    cut(wish.seq, wish.tokens);
    const Held& has = held(wish.seq);
    while (has.size() < wish.tokens.size()) {
      const bool is_last = has.size() + 1 == wish.tokens.size();
      const bool is_wanted = is_last && wish.n > 0;
      if (!add(wish.seq, wish.tokens[has.size()], is_wanted ? &wish : nullptr)) return false;
    }
  }
  while (batch_.n_tokens > 0) {
    if (!compute()) return false;
    for (Wish& wish : wishes) {
      if (std::cmp_greater_equal(wish.draft.size(), wish.n)) continue;
      if (!add(wish.seq, wish.draft.back(), &wish)) return false;
    }
  }
  return true;
}

// Computes the batch first if it is full.
bool DraftModel::add(SeqId seq, Token token, Wish* wish) {
  if (batch_.n_tokens == static_cast<int>(llama_n_batch(model_.context())) && !compute()) {
    return false;
  }
  const int i = batch_.n_tokens++;
  batch_.token[i] = token;
  batch_.pos[i] = static_cast<llama_pos>(held(seq).size());
  batch_.n_seq_id[i] = 1;
  batch_.seq_id[i][0] = seq;
  batch_.logits[i] = wish != nullptr ? 1 : 0;
  wanted_.push_back(wish);
  held(seq).push_back(token);
  return true;
}

bool DraftModel::compute() {
  int failure = 0;
  std::string why;
  (void)take_llama_complaint();  // about something else
  try {
    failure = fault_ ? fault_(batch_) : 0;
    if (failure == 0) failure = llama_decode(model_.context(), batch_);
    why = take_llama_complaint();
  } catch (const std::exception& error) {  // such as bad_alloc
    failure = -1;
    why = error.what();
  }
  if (failure != 0) {
    log::warn("engine.draft_model",
              {{"code", failure}, {"said", why}, {"so", "these requests go on without it"}});
    return false;
  }
  for (int i = 0; i < batch_.n_tokens; ++i) {
    if (Wish* wish = wanted_[static_cast<std::size_t>(i)]; wish != nullptr) guess(*wish, i);
  }
  batch_.n_tokens = 0;
  wanted_.clear();
  return true;
}

void DraftModel::guess(Wish& wish, int batch_idx) const {
  const std::span logits(llama_get_logits_ith(model_.context(), batch_idx),
                         static_cast<std::size_t>(llama_vocab_n_tokens(model_.vocab())));
  const auto best = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
  wish.draft.push_back(said(wish, best));
}

}  // namespace slipstream
