// LineReader: lines of a descriptor, none longer than a limit, until a signal.
//
// A line that is longer is read to its end and told as too long; it is not kept.
//
// Threads: thread-compatible. Errors: kIo.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace slipstream {

struct ReadLine {
  enum class Kind : std::uint8_t { kLine, kTooLong, kEnd };

  Kind kind = Kind::kEnd;
  std::string text = {};  // without the end of the line
};

class LineReader {
 public:
  // end: a descriptor that becomes readable when the input is to end early, such as a signalfd.
  LineReader(int input, int end, std::size_t line_bytes_max)
      : input_(input), end_(end), line_bytes_max_(line_bytes_max) {}

  // A last line without an end of line is a line.
  [[nodiscard]] Result<ReadLine> next();

 private:
  // False: the input has ended.
  [[nodiscard]] Result<bool> read_more();

  const int input_;
  const int end_;
  const std::size_t line_bytes_max_;
  std::string unread_;
  std::size_t n_looked_at_ = 0;  // of unread_, without an end of line
  bool is_too_long_ = false;     // what is left of the line is skipped
  bool has_ended_ = false;
};

}  // namespace slipstream
