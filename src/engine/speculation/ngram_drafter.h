// NgramDrafter: a sequence that repeats itself goes on as it did before. The draft is what followed
// the place that has most of the last tokens in common with the end.
//
// Places with the same last kMatchMin tokens are a list, newest first, as in the chains of zlib's
// deflate. For each token the lists take 4 to 8 bytes, and the table of their beginnings up to 12:
// at most 5 MiB for 262,144 tokens (decision 029, with a suffix automaton beside it).
//
// Threads, errors: as in drafter.h.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/speculation/drafter.h"

namespace slipstream {

class NgramDrafter final : public Drafter {
 public:
  static constexpr int kMatchMin = 3;
  static constexpr int kMatchMax = 64;   // tokens that are compared
  static constexpr int kPlacesMax = 32;  // places that are compared
  // Tokens learned in a call, so that no long prompt holds a step up. Until all are learned, drafts
  // are empty.
  static constexpr int kLearnedMax = 1 << 13;

  [[nodiscard]] Draft propose(std::span<const Token> tokens, int n_max) override;
  [[nodiscard]] std::size_t n_bytes() const override {
    return (newest_.capacity() + earlier_.capacity()) * sizeof(Place);
  }

 private:
  // A place is the number of tokens before it. Those with fewer than kMatchMin are in no list.
  using Place = std::int32_t;
  static constexpr Place kNone = 0;

  [[nodiscard]] Place& newest_like(std::span<const Token> tokens, Place place);
  void learn(std::span<const Token> tokens);
  void widen(std::span<const Token> tokens);

  std::vector<Place> newest_;   // of each list, open-addressed by its kMatchMin tokens
  std::vector<Place> earlier_;  // by place: the next of its list
  int n_lists_ = 0;
};

}  // namespace slipstream
