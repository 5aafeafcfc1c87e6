// TermCounts: in how many chunks of a project a term stands, which tells how much it says.
//
// Counting reads all of a term's entries, so counts are kept. They may be a little old: they are
// counted again when the index has changed and some time has passed.
//
// Threads: as the Database. Errors: as the Database.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "retrieval/store/schema.h"

namespace slipstream {

class TermCounts {
 public:
  explicit TermCounts(Database& database) : database_(database) {}

  // The number of chunks of the project.
  [[nodiscard]] Result<std::int64_t> n_chunks(ProjectId project);
  // Of those that have the term. For a phrase: that of its rarest term.
  [[nodiscard]] Result<std::int64_t> n_with(ProjectId project, const std::string& term);

 private:
  struct Counts {
    std::int64_t n_chunks = -1;
    std::unordered_map<std::string, std::int64_t> n_with;
    std::int64_t version = -1;
    std::chrono::steady_clock::time_point counted;
    bool has_table = false;
  };
  [[nodiscard]] Result<Counts*> counts_of(ProjectId project);
  [[nodiscard]] Result<std::int64_t> count_term(ProjectId project, const std::string& term);

  Database& database_;
  std::map<ProjectId, Counts> projects_;
};

}  // namespace slipstream
