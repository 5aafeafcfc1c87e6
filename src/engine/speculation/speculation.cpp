#include "engine/speculation/speculation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/speculation/draft_lengths.h"
#include "engine/speculation/ngram_drafter.h"

namespace slipstream {
namespace {

// The first 32 rows of a compressed cache decide how all are coded. They must not be those of tokens
// that an answer does not have (compressed_cache_centre.cpp). The last token has no row yet.
constexpr std::size_t kContextMin = 32 + 1;

}  // namespace

Speculation::Speculation(const SpeculationOptions& options) : options_(options) {
  SLIP_CHECK(options_.n_draft_max >= 0 && options_.n_draft_max <= SpeculationOptions::kDraftMax,
             "a draft of a length that is not counted");
}

std::vector<int> Speculation::propose(std::span<const Generating> sequences) {
  std::vector<int> lengths(sequences.size());
  if (options_.speculates == Speculates::kNever) return lengths;
  kind_ = {.n_sequences = static_cast<int>(sequences.size()), .n_context = 0};
  std::vector<std::vector<double>> chances;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto& [drafting, tokens, n_left] = sequences[i];
    kind_.n_context += std::ssize(tokens);
    if (!drafting->drafter) {
      drafting->drafter = make_drafter_ ? make_drafter_() : std::make_unique<NgramDrafter>();
    }
    const int n_max = tokens.size() < kContextMin ? 0 : std::min(options_.n_draft_max, n_left);
    drafting->draft = drafting->drafter->propose(tokens, std::max(n_max, 0));
    lengths[i] = static_cast<int>(drafting->draft.tokens.size());
    chances.push_back(drafting->acceptance.chances(drafting->draft));
  }
  if (options_.speculates == Speculates::kAlways) return lengths;
  if (sequences.empty() || costs_.wants_plain(kind_)) return std::vector<int>(sequences.size());
  return draft_lengths(
      chances, [this](int n) { return costs_.relative(kind_, n); },
      options_.n_draft_max * kind_.n_sequences);
}

void Speculation::observe_step(int n_drafted, double seconds) {
  if (kind_.n_sequences > 0) costs_.observe(kind_, n_drafted, seconds);
}

void Speculation::observe_answer(Drafting& drafting, std::span<const Token> tokens) {
  drafting.acceptance.observe(drafting.draft, tokens);
  drafting.draft = {};
}

void Speculation::count(int n_drafted, int n_accepted) {
  if (n_drafted == 0) return;
  ++stats_.n_drafts;
  stats_.n_drafted += n_drafted;
  stats_.n_accepted += n_accepted;
  for (std::size_t i = 0; std::cmp_less(i, n_accepted); ++i) ++stats_.n_accepted_at[i];
}

}  // namespace slipstream
