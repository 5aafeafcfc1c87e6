// MarkedText: a text that records which of its bytes a client wrote.
//
// Text from a client is never read as a control token (Vocabulary::tokenize_chat); the rest, which
// a chat template wrote, is. Marks follow the bytes through every cut and concatenation, so that a
// template may process a message in any way.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slipstream {

enum class Origin : std::uint8_t { kTemplate, kClient };

class MarkedText {
 public:
  struct Range {
    std::size_t begin;
    std::size_t end;
    bool operator==(const Range&) const = default;
  };

  MarkedText() = default;
  MarkedText(std::string text, Origin origin);

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  // Sorted, not empty, and never adjacent.
  [[nodiscard]] std::span<const Range> client_ranges() const { return client_; }
  // The origin of a whole that contains this text and whose parts cannot be told apart.
  [[nodiscard]] Origin origin() const {
    return client_.empty() ? Origin::kTemplate : Origin::kClient;
  }
  // In addition to the text itself.
  [[nodiscard]] std::size_t mark_bytes() const { return client_.size() * sizeof(Range); }

  void append(std::string_view text, Origin origin);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  // Appends the bytes [begin, end) of another text.
  void append(const MarkedText& other, std::size_t begin, std::size_t end);
  [[nodiscard]] MarkedText slice(std::size_t begin, std::size_t end) const;
  // REQUIRES: `part` is a view of this text.
  [[nodiscard]] MarkedText slice(std::string_view part) const;
  // Replaces the bytes and keeps the marks. REQUIRES: text.size() == size().
  [[nodiscard]] MarkedText with_text(std::string text) const;

  // Calls visit(bytes, origin) for each run of one origin, in order.
  template <typename Visit>
  void for_each_run(Visit&& visit) const {
    const std::string_view whole = text_;
    std::size_t at = 0;
    for (const Range& range : client_) {
      if (range.begin > at) visit(whole.substr(at, range.begin - at), Origin::kTemplate);
      visit(whole.substr(range.begin, range.end - range.begin), Origin::kClient);
      at = range.end;
    }
    if (at < whole.size()) visit(whole.substr(at), Origin::kTemplate);
  }

 private:
  void mark(std::size_t begin, std::size_t end);

  std::string text_;
  std::vector<Range> client_;
};

}  // namespace slipstream
