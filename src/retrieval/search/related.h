// RelatedFinder: what else in a project is about the same as a given place: the chunks that share the
// rarest of its terms and names.
//
// Threads: thread-compatible (Words).
// Errors:  as the Database; kNotFound if the place is not in the index.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "retrieval/search/candidates.h"
#include "retrieval/search/chunk_reader.h"
#include "retrieval/search/searcher.h"
#include "retrieval/search/term_counts.h"
#include "retrieval/store/projects.h"
#include "retrieval/text/words.h"

namespace slipstream {

struct RelatedRequest {
  std::string path;              // relative to the project's root
  std::optional<int> line = {};  // none: the whole file, or what of it comes first
  int n_results_max = 8;
};

class RelatedFinder {
 public:
  // database: of a Searcher, which has made it ready for candidates.
  explicit RelatedFinder(Database& database)
      : database_(database), counts_(database), chunks_(database) {}

  // Places of other files, the best first. Their terms are those that they share with the place.
  [[nodiscard]] Result<std::vector<Found>> find(const Project& project,
                                                const RelatedRequest& request);

 private:
  struct Origin {
    ContentId content = 0;
    std::string names;
    std::string text;
  };
  [[nodiscard]] Result<Origin> read_origin(const Project& project, const RelatedRequest& request);
  [[nodiscard]] Result<std::vector<WeightedTerm>> telling_terms(ProjectId project,
                                                                const Origin& origin);

  Database& database_;
  TermCounts counts_;
  ChunkReader chunks_;
  Words words_;
};

}  // namespace slipstream
