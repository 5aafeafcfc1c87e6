// TextStream: turns the pieces of generated tokens into text that can be shown at once.
//
// A token may end inside a character or inside a stop string. Bytes that could become part of
// either are held back: at most the longest stop string and one character. Emitted text is valid
// UTF-8 (errors become U+FFFD, as in utf8.h), never contains a stop string and is never taken back.
// The stop string that is complete first ends the text; if several end together, the longest
// counts. This does not depend on how the text is cut into pieces. The stop string is not part of
// the text.
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
    bool stopped = false;           // a stop string has matched, now or earlier
    std::string matched_stop = {};  // which one
  };

  [[nodiscard]] static Result<TextStream> create(std::vector<std::string> stops);

  // Adds the bytes of a token. Nothing is emitted after a stop. A stop string that ends in a token
  // that may not stop is text.
  [[nodiscard]] Delta push(std::string_view piece, bool may_stop = true);
  // No token follows: emits what was held back.
  [[nodiscard]] Delta finish();

 private:
  // A stop string and how much of it the text ends with. Knuth-Morris-Pratt: the cost per byte does
  // not depend on the length of the text or on repetitions in the string.
  struct Stop {
    explicit Stop(std::string stop_text);
    void push(char byte);
    [[nodiscard]] bool is_complete() const { return n_matched == text.size(); }

    std::string text;
    std::vector<std::uint16_t> borders;  // [i]: longest proper prefix and suffix of text[0..i]
    std::size_t n_matched = 0;
  };

  explicit TextStream(std::vector<std::string> stops);
  // Emits held_[0, n_bytes); `last`: the text ends there.
  [[nodiscard]] std::string emit(std::size_t n_bytes, bool last);
  [[nodiscard]] const Stop* longest_complete() const;
  void forgo_complete();
  [[nodiscard]] std::size_t n_bytes_in_stops() const;

  std::vector<Stop> stops_;
  std::string held_;
  bool stopped_ = false;
  std::string matched_stop_;
};

}  // namespace slipstream
