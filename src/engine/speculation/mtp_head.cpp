#include "engine/speculation/mtp_head.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "engine/model/llama_log.h"
#include "engine/prefixes/cells.h"

namespace slipstream {

Result<std::unique_ptr<MtpHead>> MtpHead::create(const Model& model, int n_sequences) {
  const Result<MtpCalls> calls = find_mtp_calls();
  if (!calls) return std::unexpected(calls.error());
  Result<llama_context_ptr> context = model.make_mtp_context(n_sequences);
  if (!context) return std::unexpected(context.error());
  std::unique_ptr<MtpHead> head(new MtpHead(model, std::move(*context), *calls, n_sequences));
  // Whether states can be given to this context shows when one is.
  const std::vector<float> state(head->n_embd_, 1.0F);
  if (!head->add(0, 0, 0, state, nullptr) || !head->compute()) {
    return fail(Code::kUnsupported, "this libllama cannot compute the model's layer for MTP");
  }
  head->clear();
  return head;
}

// A round reads one layer and the output's matrix. That is a guess until it is measured.
MtpHead::MtpHead(const Model& model, llama_context_ptr context, MtpCalls calls, int n_sequences)
    : model_context_(model.context()),
      context_(std::move(context)),
      calls_(calls),
      n_embd_(static_cast<std::size_t>(llama_model_n_embd_out(model.model()))),
      n_vocab_(static_cast<std::size_t>(llama_vocab_n_tokens(model.vocab()))),
      relative_cost_(2.0 / (1 + llama_model_n_layer(model.model()))),
      sequences_(static_cast<std::size_t>(n_sequences)),
      batch_(llama_batch_ext_init(context_.get())) {
  calls_.keep_states(model_context_, true, /*is_masked=*/false);
  calls_.keep_states(context_.get(), true, /*is_masked=*/false);
}

MtpHead::~MtpHead() { calls_.keep_states(model_context_, false, false); }

int MtpHead::n_states(const Sequence& sequence) const {
  return static_cast<int>(sequence.states.size() / n_embd_);
}

int MtpHead::n_cells_used() const {
  llama_memory_t memory = llama_get_memory(context_.get());
  int n = 0;
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    const auto seq = static_cast<SeqId>(i);
    const int last = llama_memory_seq_pos_max(memory, seq);
    if (last >= 0) n += last + 1 - llama_memory_seq_pos_min(memory, seq);
  }
  return n;
}

void MtpHead::release(SeqId seq) {
  of(seq) = {};
  llama_memory_seq_rm(llama_get_memory(context_.get()), seq, 0, kEndOfSequence);
}

void MtpHead::clear() {
  for (Sequence& sequence : sequences_) sequence = {};
  llama_memory_clear(llama_get_memory(context_.get()), true);
}

// Rows of refused drafts are those of other tokens: the next batch begins where they do.
void MtpHead::observe(SeqId seq, int first, int n, int batch_idx) {
  Sequence& sequence = of(seq);
  const int n_kept = first - (sequence.n_read - 1);
  if (sequence.n_read < 0 || n_kept < 0 || n_kept > n_states(sequence)) {
    release(seq);
    sequence.n_read = first + 1;
  } else {
    sequence.states.resize(static_cast<std::size_t>(n_kept) * n_embd_);
  }
  for (int i = 0; i < n; ++i) {
    const float* state = calls_.state(model_context_, batch_idx + i);
    if (state == nullptr) return release(seq);
    sequence.states.insert(sequence.states.end(), state, state + n_embd_);
  }
}

// The last token is read with the guesses, for its output.
std::optional<int> MtpHead::n_missing(SeqId seq, std::span<const Token> tokens) const {
  const Sequence& sequence = of(seq);
  if (sequence.n_read < 0) return std::nullopt;
  const int n = static_cast<int>(tokens.size()) - sequence.n_read;
  if (n < 1 || n > n_states(sequence)) return std::nullopt;
  return n;
}

void MtpHead::catch_up(SeqId seq, std::span<const Token> tokens) {
  const Sequence& sequence = of(seq);
  if (sequence.n_read < 0) return;
  const int n_unread = static_cast<int>(tokens.size()) - 1 - sequence.n_read;
  const int n = std::min(n_unread, n_states(sequence));
  if (n > kPutOff && !learn(seq, tokens, n)) log::debug("engine.mtp", {{"begins_anew", seq}});
}

bool MtpHead::learn(SeqId seq, std::span<const Token> tokens, int n) {
  llama_batch_ext_clear(batch_.get());
  wanted_.clear();
  const bool is_done = read(seq, tokens, n) && compute();
  if (!is_done) release(seq);
  return is_done;
}

bool MtpHead::cut_guesses(SeqId seq) {
  Sequence& sequence = of(seq);
  if (!std::exchange(sequence.has_guesses, false)) return true;
  return llama_memory_seq_rm(llama_get_memory(context_.get()), seq, sequence.n_read,
                             kEndOfSequence);
}

// Puts the next n tokens into batches; the last of these is not computed yet.
bool MtpHead::read(SeqId seq, std::span<const Token> tokens, int n) {
  Sequence& sequence = of(seq);
  if (!cut_guesses(seq)) return false;
  for (int i = 0; i < n; ++i) {
    const auto position = static_cast<std::size_t>(sequence.n_read + i);
    const auto state = std::span(sequence.states).subspan(static_cast<std::size_t>(i) * n_embd_);
    if (!add(seq, tokens[position], sequence.n_read + i, state.first(n_embd_), nullptr)) {
      return false;
    }
  }
  sequence.n_read += n;
  const auto n_numbers = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(n) * n_embd_);
  sequence.states.erase(sequence.states.begin(), sequence.states.begin() + n_numbers);
  return true;
}

bool MtpHead::draft(std::span<Wish> wishes) {
  if (guess_all(wishes)) return true;
  for (Wish& wish : wishes) {
    wish.draft.clear();
    release(wish.seq);
  }
  return false;
}

bool MtpHead::guess_all(std::span<Wish> wishes) {
  llama_batch_ext_clear(batch_.get());
  wanted_.clear();
  for (Wish& wish : wishes) {
    Sequence& sequence = of(wish.seq);
    const int n_tokens = static_cast<int>(wish.tokens.size());
    if (!read(wish.seq, wish.tokens, n_tokens - 1 - sequence.n_read)) return false;
    if (wish.n == 0) continue;
    const auto state = std::span<const float>(sequence.states).first(n_embd_);
    if (!add(wish.seq, wish.tokens.back(), n_tokens - 1, state, &wish)) return false;
    sequence.has_guesses = true;
  }
  while (!wanted_.empty()) {
    if (!compute()) return false;
    for (Wish& wish : wishes) {
      if (std::cmp_greater_equal(wish.draft.size(), wish.n)) continue;
      const auto position = static_cast<int>(wish.tokens.size() + wish.draft.size()) - 1;
      if (!add(wish.seq, wish.draft.back(), position, of(wish.seq).guessed, &wish)) return false;
    }
  }
  return true;
}

// Computes the batch first if it is full.
bool MtpHead::add(SeqId seq, Token token, int position, std::span<const float> state, Wish* wish) {
  if (wanted_.size() == llama_n_batch(context_.get()) && !compute()) return false;
  const int i = llama_batch_ext_add_token(batch_.get(), seq, token);
  if (i < 0) return false;
  wanted_.push_back(wish);
  return llama_batch_ext_set_pos(batch_.get(), i, &position) &&
         llama_batch_ext_set_output_logits(batch_.get(), i, wish != nullptr) &&
         llama_batch_ext_set_embd_state(
             batch_.get(), i, {.data = state.data(), .n_rows = 1, .n_embd = state.size()});
}

bool MtpHead::compute() {
  if (wanted_.empty()) return true;
  int failure = 0;
  std::string why;
  (void)take_llama_complaint();  // about something else
  try {
    failure = fault_ ? fault_() : 0;
    if (failure == 0) {
      failure = llama_process(context_.get(), LLAMA_PROCESS_TYPE_DECODE, batch_.get());
    }
    why = take_llama_complaint();
  } catch (const std::exception& error) {  // such as bad_alloc
    failure = -1;
    why = error.what();
  }
  if (failure != 0) {
    log::warn("engine.mtp",
              {{"code", failure}, {"said", why}, {"so", "these requests go on without it"}});
    return false;
  }
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i] != nullptr) guess(*wanted_[i], static_cast<int>(i));
  }
  llama_batch_ext_clear(batch_.get());
  wanted_.clear();
  return true;
}

void MtpHead::guess(Wish& wish, int batch_idx) {
  const std::span logits(llama_get_logits_ith(context_.get(), batch_idx), n_vocab_);
  const auto best = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
  wish.draft.push_back(said(wish, best));
  const float* state = calls_.state(context_.get(), batch_idx);
  SLIP_CHECK(state != nullptr, "a context that keeps states has none");
  of(wish.seq).guessed.assign(state, state + n_embd_);
}

}  // namespace slipstream
