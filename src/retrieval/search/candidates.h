// find_candidates(): the chunks that a query's terms lead to, with a first estimate of how good each
// is.
//
// FTS5 finds the chunks with any of the terms, and a function of ours adds up what the terms say
// (BM25 without the length of chunks, which differs little). FTS5's own bm25() reads all entries of
// every term once more to count them, and the size of each chunk. Terms that stand in most chunks
// say nothing about which to take: the rarest terms are used, as many as stand in some ten thousand
// chunks together. ranker.h looks at all terms.
//
// Threads: as the Database. Errors: as the Database.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "retrieval/store/schema.h"

namespace slipstream {

inline constexpr double kSaturation = 1.2;  // BM25's k1
// A name that a chunk defines counts as much as so many places in its text.
inline constexpr double kNameCounts = 3;

struct WeightedTerm {
  std::string text;
  std::int64_t n_with = 0;  // chunks that have it
  double weight = 0;        // its inverse document frequency
};

struct Candidate {
  std::int64_t id;  // of a chunk, or of a file
  double score;
};

// Makes the estimate known to the connection. Called once.
[[nodiscard]] Result<void> add_estimate(Database& database);

// Of a full-text table of schema.h: the best first. first_column_counts: how many times a term of
// the first column counts.
[[nodiscard]] Result<std::vector<Candidate>> find_candidates(Database& database,
                                                             const std::string& table,
                                                             std::span<const WeightedTerm> terms,
                                                             double first_column_counts, int n_max);

}  // namespace slipstream
