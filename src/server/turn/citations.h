// CitationFinder: where an answer cites the places that its conversation shows: "[2]", "[1, 3]".
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "server/recall/sources.h"

namespace slipstream {

// In characters of the answer's content; both 0: the place was shown for this answer, and it does not
// cite it.
struct Citation {
  RecallSource source;
  std::size_t start = 0;
  std::size_t end = 0;
};

class CitationFinder {
 public:
  explicit CitationFinder(std::shared_ptr<const ShownSources> sources)
      : sources_(std::move(sources)) {}

  // More of the content.
  void push(std::string_view text);
  // In the order of the answer, then what was shown for it and not cited.
  [[nodiscard]] std::vector<Citation> finish() const;

 private:
  void take_number();

  const std::shared_ptr<const ShownSources> sources_;
  std::vector<Citation> found_;
  std::vector<bool> is_cited_ = std::vector<bool>(sources_->all.size());
  std::size_t n_chars_ = 0;
  // Of the bracket that is open, if one is.
  bool is_open_ = false;
  std::size_t start_ = 0;
  std::size_t number_ = 0;  // 0: there are no digits yet
  std::vector<std::size_t> numbers_;
};

}  // namespace slipstream
