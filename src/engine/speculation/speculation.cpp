#include "engine/speculation/speculation.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "engine/speculation/draft_lengths.h"
#include "engine/speculation/ngram_drafter.h"

namespace slipstream {
namespace {

// The first 32 rows of a compressed cache decide how all are coded. They must not be those of tokens
// that an answer does not have (compressed_cache_centre.cpp). The last token has no row yet.
constexpr std::size_t kContextMin = 32 + 1;

// How much longer than usual a cost is believed, if a sequence must be learned to measure it again.
constexpr int kLearningPatience = 32;

int sum_of(std::span<const int> lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), 0);
}

}  // namespace

double Speculation::steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

Speculation::Speculation(const SpeculationOptions& options, BatchDrafter* model,
                         ModelDrafts::Clock clock)
    : options_(options) {
  SLIP_CHECK(options_.n_draft_max >= 0 && options_.n_draft_max <= SpeculationOptions::kDraftMax,
             "a draft of a length that is not counted");
  if (model != nullptr && options_.speculates != Speculates::kNever) {
    model_.emplace(*model, std::move(clock));
  }
}

std::vector<int> Speculation::propose(std::span<const Generating> sequences) {
  std::vector<int> none(sequences.size());
  if (options_.speculates == Speculates::kNever) return none;
  kind_ = {.n_sequences = static_cast<int>(sequences.size()), .n_context = 0};
  std::vector<std::vector<double>> chances;
  for (const Generating& sequence : sequences) {
    kind_.n_context += std::ssize(sequence.tokens);
    const int n_max = sequence.tokens.size() < kContextMin
                          ? 0
                          : std::clamp(sequence.n_left, 0, options_.n_draft_max);
    chances.push_back(find(sequence, n_max));
    offer(sequence, n_max, chances.back());
  }
  if (options_.speculates == Speculates::kAlways) return whole(sequences, chances);
  if (sequences.empty() || costs_.wants_plain(kind_)) return none;
  return worthwhile(sequences, std::move(chances));
}

// What the sequence said before, and the chance of each token of it.
std::vector<double> Speculation::find(const Generating& sequence, int n_max) {
  Drafting& drafting = *sequence.drafting;
  if (!drafting.drafter) {
    drafting.drafter = make_drafter_ ? make_drafter_() : std::make_unique<NgramDrafter>();
  }
  drafting.found = drafting.drafter->propose(sequence.tokens, n_max);
  return drafting.acceptance.chances(drafting.found);
}

// The draft model guesses instead if its first token is more likely to be right. Where both are as
// good, what was found is, which costs no time.
void Speculation::offer(const Generating& sequence, int n_max, std::vector<double>& chances) {
  Drafting& drafting = *sequence.drafting;
  drafting.uses_model = drafting.is_learned = false;
  if (!model_) return;
  ModelDrafts::Offer offer = model_->offer(drafting.model, sequence.seq, sequence.tokens, n_max);
  if (offer.chances.empty()) return;
  if (!chances.empty() && chances.front() >= offer.chances.front()) return;
  drafting.uses_model = true;
  drafting.n_missing = offer.n_missing;
  chances = std::move(offer.chances);
}

std::vector<int> Speculation::whole(std::span<const Generating> sequences,
                                    std::span<const std::vector<double>> chances) {
  std::vector<int> lengths;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Drafting& drafting = *sequences[i].drafting;
    drafting.is_learned = drafting.must_be_learned();
    lengths.push_back(drafting.is_learned ? 0 : static_cast<int>(chances[i].size()));
  }
  return lengths;
}

double Speculation::relative_cost(std::span<const Generating> sequences,
                                  std::span<const int> lengths, int patience) const {
  const double cost = costs_.relative(kind_, sum_of(lengths), patience);
  int n_sequences = 0;
  int n_rounds = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (lengths[i] == 0 || !sequences[i].drafting->uses_model) continue;
    ++n_sequences;
    n_rounds = std::max(n_rounds, lengths[i]);
  }
  if (n_rounds == 0) return cost;
  const double step = costs_.plain_seconds(kind_);
  return cost + model_->seconds(n_sequences, n_rounds, step) / step;
}

// Sequences that the draft model has yet to learn do so if lengths of theirs would be best; the others'
// are best without them. What was found too dear is not doubted as soon where a sequence had to be
// learned to try it again.
std::vector<int> Speculation::worthwhile(std::span<const Generating> sequences,
                                         std::vector<std::vector<double>> chances) {
  const int n_max = options_.n_draft_max * kind_.n_sequences;
  const auto best_of = [&](int patience) {
    return draft_lengths(
        chances,
        [&](std::span<const int> lengths) { return relative_cost(sequences, lengths, patience); },
        n_max);
  };
  const bool are_ready = std::ranges::none_of(
      sequences, [](const Generating& sequence) { return sequence.drafting->must_be_learned(); });
  const std::vector<int> best = best_of(are_ready ? 1 : kLearningPatience);
  std::vector<int> possible(best.size());
  for (std::size_t i = 0; i < best.size(); ++i) {
    Drafting& drafting = *sequences[i].drafting;
    if (drafting.must_be_learned()) {
      drafting.is_learned = best[i] > 0;
      chances[i].clear();
    } else if (best[i] > 0) {
      possible[i] = static_cast<int>(chances[i].size());
    }
  }
  const int n_best = sum_of(best);
  if (const int turn = costs_.turn(kind_, n_best); turn < n_best) {
    // Whether it pays shows when it is done.
    std::vector<int> tried = shortened(std::move(possible), turn);
    if (!costs_.is_known(kind_, sum_of(tried))) return tried;
  }
  const std::vector<int> now = are_ready ? best : best_of(1);
  return shortened(now, costs_.turn(kind_, sum_of(now)));
}

void Speculation::draft(std::span<Planned> planned) {
  if (!model_) return;
  std::vector<ModelDrafts::Wish> learned;
  std::vector<ModelDrafts::Wish> guessed;
  for (const Planned& one : planned) {
    Drafting& drafting = *one.drafting;
    const ModelDrafts::Wish wish{.request = &drafting.model,
                                 .seq = one.seq,
                                 .tokens = one.tokens,
                                 .n = one.n_drafted,
                                 .n_missing = drafting.n_missing};
    if (drafting.is_learned) learned.push_back(wish);
    if (drafting.uses_model && one.n_drafted > 0) guessed.push_back(wish);
  }
  const bool is_timed =
      options_.speculates == Speculates::kWhereItPays && !costs_.wants_plain(kind_);
  model_->learn(learned, is_timed ? costs_.plain_seconds(kind_) : 0);
  model_->make(guessed);
  for (Planned& one : planned) {
    const int n_drafts = static_cast<int>(one.drafting->draft().size());
    one.n_drafted = std::min(one.n_drafted, n_drafts);
  }
}

void Speculation::observe_step(int n_drafted, double seconds) {
  if (kind_.n_sequences > 0) costs_.observe(kind_, n_drafted, seconds);
}

void Speculation::observe_answer(Drafting& drafting, std::span<const Token> tokens) {
  drafting.acceptance.observe(drafting.found, tokens);
  drafting.found = {};
  if (model_) model_->observe(drafting.model, tokens);
}

void Speculation::count(int n_drafted, int n_accepted) {
  if (n_drafted == 0) return;
  ++stats_.n_drafts;
  stats_.n_drafted += n_drafted;
  stats_.n_accepted += n_accepted;
  for (std::size_t i = 0; std::cmp_less(i, n_accepted); ++i) ++stats_.n_accepted_at[i];
}

void Speculation::observe_batch(SeqId seq, int first, int n, int batch_idx) {
  if (model_) model_->observe_batch(seq, first, n, batch_idx);
}

void Speculation::catch_up(SeqId seq, std::span<const Token> tokens) {
  if (model_) model_->catch_up(seq, tokens);
}

void Speculation::release(SeqId seq) {
  if (model_) model_->release(seq);
}

SpeculationStats Speculation::stats() const {
  SpeculationStats stats = stats_;
  if (model_) {
    stats.n_guessed = model_->n_guessed();
    stats.draft_model_seconds = model_->seconds_spent();
  }
  return stats;
}

}  // namespace slipstream
