// AnswerPrinter: prints an answer as it arrives. Reasoning is dimmed, or put between marks if there
// are no colours. No control characters of the answer are printed (terminal_text.h).
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <string>

#include "cli/chat/chat_client.h"

namespace slipstream::chat {

struct Look {
  bool has_colors = false;
  bool shows_reasoning = true;  // otherwise only the answer
};
// For standard output: colours on a terminal, unless NO_COLOR is set or the terminal is dumb.
[[nodiscard]] Look look_of_terminal();

// Text that is less prominent.
[[nodiscard]] std::string dimmed(const std::string& text, const Look& look);

class AnswerPrinter {
 public:
  explicit AnswerPrinter(const Look& look) : look_(look) {}

  void print(const Piece& piece);
  // Ends the last line and the colours.
  void finish();

 private:
  void enter(Piece::Kind kind);
  void write(const std::string& text);

  const Look look_;
  bool has_begun_ = false;
  Piece::Kind kind_ = Piece::Kind::kContent;
  bool is_at_line_begin_ = true;
};

// "48.1 tokens/s | first token 0.12 s | prompt 1027 tokens, 1000 cached | KV ...".
[[nodiscard]] std::string status_line(const Answer& answer, const std::optional<KvUse>& kv);

}  // namespace slipstream::chat
