// Outliner: finds the symbols of a text with universal-ctags, which knows more than a hundred
// languages, and the headings of documents as well.
//
// ctags is a process of its own that answers one text after the other (--_interactive). It has given
// up all system calls but those on its pipes ("sandbox"). One that takes too long, or ends, is
// replaced, and its text has no symbols: a parser that a file can stop stops nothing else.
//
// Threads: thread-compatible.
// Errors:  none: without ctags no text has symbols.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "retrieval/content/symbol.h"

namespace slipstream {

class Outliner {
 public:
  explicit Outliner(std::chrono::milliseconds time_max);
  ~Outliner();
  Outliner(const Outliner&) = delete;
  Outliner& operator=(const Outliner&) = delete;

  // Whether ctags is installed.
  [[nodiscard]] static bool is_available();

  // The symbols in order of their lines. path: its name tells the language.
  [[nodiscard]] std::vector<Symbol> outline(std::string_view path, std::string_view text);
  [[nodiscard]] int n_failures() const { return n_failures_; }

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] bool start();
  void end();
  [[nodiscard]] bool send(std::string_view bytes, Clock::time_point until);
  // The next line of its answer; false: it has ended, or the time is up.
  [[nodiscard]] bool read_line(std::string& line, Clock::time_point until);
  [[nodiscard]] bool ask(std::string_view path, std::string_view text,
                         std::vector<Symbol>& symbols);

  const std::chrono::milliseconds time_max_;
  pid_t pid_ = 0;  // 0: it does not run
  UniqueFd in_;
  UniqueFd out_;
  std::string unread_;
  int n_failures_ = 0;
};

}  // namespace slipstream
