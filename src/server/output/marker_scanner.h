// MarkerScanner: finds a few fixed texts in a stream, holding back only what may be the start of
// one.
//
// Of the markers of one scanner none begins with another, so that the first to be complete is the
// one. A byte costs at most (markers x the longest marker) comparisons: a dozen of thirty bytes
// here.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

class MarkerScanner {
 public:
  explicit MarkerScanner(std::vector<std::string_view> markers) : markers_(std::move(markers)) {}

  // Takes a byte. Appends to `text` what is certain to be no marker; the index of the marker that
  // this byte completes.
  [[nodiscard]] std::optional<std::size_t> push(char byte, std::string& text);
  // The text ends, or something else follows: what was held back is no marker.
  [[nodiscard]] std::string take_held();
  [[nodiscard]] bool holds_text() const { return !held_.empty(); }
  [[nodiscard]] std::string_view marker(std::size_t idx) const { return markers_[idx]; }

 private:
  std::vector<std::string_view> markers_;
  std::string held_;
};

}  // namespace slipstream
