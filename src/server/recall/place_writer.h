// PlaceWriter: collects places for one message, as many as its tokens allow.
//
// Threads: thread-compatible. Errors: none: what a vocabulary cannot read is left out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "engine/text/vocabulary.h"
#include "server/recall/added_texts.h"

namespace slipstream {

class PlaceWriter {
 public:
  static constexpr int kTokensOfHead = 40;  // of the numbered line above a place, about
  // Tokens of prose and code are shorter. Of a longer text no more is cut into tokens.
  static constexpr std::size_t kBytesPerTokenMax = 32;

  // n_shown: places that the conversation has before.
  PlaceWriter(const Vocabulary& vocabulary, std::size_t n_shown, int n_tokens_max)
      : vocabulary_(vocabulary), n_shown_(n_shown), n_left_(n_tokens_max) {}

  // The lines from source.first_line on, as many of them as there is room for; of a line that is
  // longer than that its beginning. False: these were not all.
  bool add(RecallSource source, const std::string& text);
  // The same with at most so many tokens.
  bool add(RecallSource source, const std::string& text, int n_tokens_max);
  // Tokens that the place would take, with its line above it.
  [[nodiscard]] int n_tokens_of(const RecallSource& source, const std::string& text) const;

  [[nodiscard]] int n_left() const { return n_left_; }
  [[nodiscard]] int n_used() const { return n_used_; }
  void limit(int n_left) { n_left_ = std::min(n_left_, n_left); }
  [[nodiscard]] bool has(const RecallSource& source) const;
  [[nodiscard]] AddedPlaces& places() { return places_; }

 private:
  const Vocabulary& vocabulary_;
  const std::size_t n_shown_;
  int n_left_;
  int n_used_ = 0;
  AddedPlaces places_;
};

}  // namespace slipstream
