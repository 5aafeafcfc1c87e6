// fuse(): one order of places out of two: how well their words answer a query, and how near their
// meaning is.
//
// Which of the two counts, and how much, depends on the kind of query. The weights were chosen on
// one half of the queries of two sets and measured on the other, and on a third set
// (docs/search.md): on none does the whole lose to its better part.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "retrieval/search/query.h"

namespace slipstream {

enum class QueryKind : std::uint8_t {
  kNames,     // identifiers, paths, words between quotes: somebody knows what stands there
  kKeywords,  // a few words
  kProse,     // a sentence or a question
};
[[nodiscard]] QueryKind kind_of(const Query& query, std::string_view text);

struct PlaceScores {
  double lexical = 0;
  std::optional<float> cosine = {};  // none: the place has no vector yet
};

// What the meaning counts for this kind, from 0 (only words) to 1.
[[nodiscard]] double weight_of_meaning(QueryKind kind);

// A score for each place, from 0 to 1.
[[nodiscard]] std::vector<double> fuse(std::span<const PlaceScores> places,
                                       double weight_of_meaning);

// Whether a place is near enough to a query to answer it without having its words.
[[nodiscard]] bool is_near(std::optional<float> cosine);

}  // namespace slipstream
