// TextStream: turns the pieces of generated tokens into text that can be shown at once and for
// good.
//
// Tokens end where they like: inside a character, inside a stop string. Bytes are held back while
// they could become either, at most the longest stop string and one character. What is emitted is
// valid UTF-8 (errors become U+FFFD, as in utf8.h) and never contains a stop string. The stop
// string that is complete first ends the text, the longest of those that end together, whatever the
// cutting into pieces; it is not part of the text.
//
// Threads: thread-compatible.
// Errors:  create() refuses empty, too many or too long stop strings (kInvalidArgument).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slipstream {

class TextStream {
 public:
  struct Delta {
    std::string text = {};
    bool stopped = false;           // a stop string was met, now or before
    std::string matched_stop = {};  // which
  };

  [[nodiscard]] static Result<TextStream> create(std::vector<std::string> stops);

  // Takes the bytes of a token. Nothing more is emitted after a stop.
  [[nodiscard]] Delta push(std::string_view piece);
  // No token follows: emits what was held back.
  [[nodiscard]] Delta finish();

 private:
  // A stop string and how much of it the text ends with: Knuth-Morris-Pratt, so that a byte costs
  // the same however long the text is and however the string repeats itself.
  struct Stop {
    explicit Stop(std::string stop_text);
    void push(char byte);

    std::string text;
    std::vector<std::uint16_t> borders;  // [i]: of text[0..i], the longest proper prefix and suffix
    std::size_t n_matched = 0;
  };

  explicit TextStream(std::vector<std::string> stops);
  // Emits held_[0, n_bytes); the end of the text if `last`.
  [[nodiscard]] std::string emit(std::size_t n_bytes, bool last);
  [[nodiscard]] const Stop* longest_complete() const;
  [[nodiscard]] std::size_t n_bytes_in_stops() const;

  std::vector<Stop> stops_;
  std::string held_;
  bool stopped_ = false;
  std::string matched_stop_;
};

}  // namespace slipstream
