// rank(): how well a chunk answers a query, from all that is known of both.
//
// BM25 over the chunk's text, the names that it defines and its file's path; more if the query's
// terms stand near each other, and if it defines what the query names.
//
// Threads: thread-compatible (Words). Errors: none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "retrieval/search/candidates.h"
#include "retrieval/text/words.h"

namespace slipstream {

struct RankedText {
  std::string_view path;
  std::string_view names;
  std::string_view text;
  bool defines_name = false;  // a symbol that the query names
};

struct Rank {
  double score = 0;
  double share = 0;                     // of the query's weight that the chunk's terms have
  bool has_pair = false;                // two of them stand side by side
  std::vector<std::size_t> terms = {};  // of the query that it has, by number
};

[[nodiscard]] Rank rank(const RankedText& chunk, std::span<const WeightedTerm> terms, Words& words);

}  // namespace slipstream
