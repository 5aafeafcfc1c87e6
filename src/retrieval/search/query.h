// Query: what somebody looks for, as terms.
//
// A query is words of prose, names from code, paths, or all of them. Words between double quotes must
// stand together. Words that only make a question of it ("where", "does") are left out if others
// remain.
//
// Threads: immutable. Errors: none; what is longer than a query may be is left out, and told.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "retrieval/text/words.h"

namespace slipstream {

struct QueryTerm {
  std::string text;          // as Words cuts it; several with spaces between them are a phrase
  std::string written = {};  // as the query has it
  bool is_name = false;      // the whole of an identifier of several parts
  bool is_part = false;      // of such an identifier
};

struct Query {
  std::vector<QueryTerm> terms;    // each once
  std::vector<std::string> names;  // words that could be symbols, as they were written
  bool was_cut = false;            // it had more terms than a query may have
};

[[nodiscard]] Query read_query(std::string_view text, Words& words);

}  // namespace slipstream
