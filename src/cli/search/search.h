// `slipstream search QUERY`: searches the folders of the index (docs/search.md). Places go to
// standard output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "retrieval/search/searcher.h"

namespace CLI {
class App;
}

namespace slipstream::search {

struct Options {
  std::string index;  // empty: the user's
  std::vector<std::string> words;
  std::string project;
  std::string path_prefix;
  int n_results = 8;
  int n_lines = 12;  // of each place; 0: all
  bool is_json = false;
  bool is_by_words = false;  // without the index's embedder
  std::string reranker;      // empty: none
  bool is_as_it_is = false;  // without bringing the index up to date
};

class Command {
 public:
  explicit Command(CLI::App& app);
  // The exit status; nullopt if the command was not given.
  [[nodiscard]] std::optional<int> run() const;

 private:
  Options options_;
  CLI::App* search_;
};

// Returns 0 if there are places, 1 if there are none, 2 after an error, as grep does.
int search(const Options& options);

[[nodiscard]] std::string format_found(const Found& found, int n_lines_max);
[[nodiscard]] std::string to_json(const Found& found);

}  // namespace slipstream::search
