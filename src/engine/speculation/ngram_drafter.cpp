#include "engine/speculation/ngram_drafter.h"

#include <algorithm>
#include <ranges>

namespace slipstream {
namespace {

constexpr std::size_t kSlotsMin = 64;
constexpr auto kMin = static_cast<std::size_t>(NgramDrafter::kMatchMin);

std::size_t index(std::int32_t place) { return static_cast<std::size_t>(place); }

std::span<const Token> last_before(std::span<const Token> tokens, std::int32_t place) {
  return tokens.subspan(index(place) - kMin, kMin);
}

std::size_t hash_of(std::span<const Token> tokens) {
  std::uint64_t hash = 0;
  for (const Token token : tokens) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29U;
  }
  return static_cast<std::size_t>(hash);
}

// How many tokens before both places are the same.
int n_common(std::span<const Token> tokens, std::int32_t a, std::int32_t b) {
  const auto n_max = std::min({index(a), index(b), std::size_t{NgramDrafter::kMatchMax}});
  const auto before_a = tokens.first(index(a)).last(n_max) | std::views::reverse;
  const auto before_b = tokens.first(index(b)).last(n_max) | std::views::reverse;
  return static_cast<int>(std::ranges::mismatch(before_a, before_b).in1 - before_a.begin());
}

}  // namespace

// The newest place of the list that `place` belongs to; kNone, to be set, if there is no list yet.
NgramDrafter::Place& NgramDrafter::newest_like(std::span<const Token> tokens, Place place) {
  const std::span wanted = last_before(tokens, place);
  const std::size_t mask = newest_.size() - 1;
  std::size_t slot = hash_of(wanted) & mask;
  while (newest_[slot] != kNone &&
         !std::ranges::equal(last_before(tokens, newest_[slot]), wanted)) {
    slot = (slot + 1) & mask;
  }
  return newest_[slot];
}

void NgramDrafter::widen(std::span<const Token> tokens) {
  std::vector<Place> old(std::max(newest_.size() * 2, kSlotsMin), kNone);
  old.swap(newest_);
  for (const Place place : old) {
    if (place != kNone) newest_like(tokens, place) = place;
  }
}

void NgramDrafter::learn(std::span<const Token> tokens) {
  const std::size_t end = std::min(tokens.size() + 1, earlier_.size() + std::size_t{kLearnedMax});
  for (std::size_t i = earlier_.size(); i < end; ++i) {
    earlier_.push_back(kNone);
    if (i < kMin) continue;
    if (index(n_lists_) * 3 >= newest_.size() * 2) widen(tokens);
    const auto place = static_cast<Place>(i);
    Place& newest = newest_like(tokens, place);
    if (newest == kNone) ++n_lists_;
    earlier_[i] = newest;
    newest = place;
  }
}

Draft NgramDrafter::propose(std::span<const Token> tokens, int n_max) {
  learn(tokens);
  Draft draft;
  if (earlier_.size() <= tokens.size()) return draft;
  const auto end = static_cast<Place>(tokens.size());
  Place best = kNone;
  Place place = earlier_[tokens.size()];
  for (int n_left = kPlacesMax; place != kNone && n_left > 0; --n_left) {
    const int n_matched = n_common(tokens, place, end);
    if (n_matched > draft.n_matched) {
      draft.n_matched = n_matched;
      best = place;
    }
    if (n_matched == kMatchMax) break;
    place = earlier_[index(place)];
  }
  if (best == kNone) return draft;
  // A draft that reaches the end goes on in itself: what repeats goes on repeating.
  for (std::size_t i = index(best); std::ssize(draft.tokens) < n_max; ++i) {
    draft.tokens.push_back(i < tokens.size() ? tokens[i] : draft.tokens[i - tokens.size()]);
  }
  return draft;
}

}  // namespace slipstream
