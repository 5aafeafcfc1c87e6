// MarkerScanner: finds a few fixed texts (markers) in a stream. It holds back only bytes that may
// begin a marker.
//
// No marker of a scanner begins with another one, so the first complete marker is the right one. A
// byte costs at most (markers x length of the longest) comparisons: here a dozen of thirty bytes.
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

  // Takes a byte. Appends to `text` what is certainly not part of a marker. Returns the index of
  // the marker that this byte completes.
  [[nodiscard]] std::optional<std::size_t> push(char byte, std::string& text);
  // Call this when the text ends or something else follows: the held-back bytes are not a marker.
  [[nodiscard]] std::string take_held();
  [[nodiscard]] bool holds_text() const { return !held_.empty(); }
  [[nodiscard]] std::string_view marker(std::size_t idx) const { return markers_[idx]; }

 private:
  std::vector<std::string_view> markers_;
  std::string held_;
};

}  // namespace slipstream
