// AnswerPrinter: an answer as it comes. Reasoning is dimmed, or between marks where there are no
// colours; nothing of it is a control character (terminal_text.h).
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <string>

#include "cli/chat/chat_client.h"

namespace slipstream::chat {

struct Look {
  bool has_colors = false;
  bool shows_reasoning = true;  // else the answer alone
};
// Of standard output: colours on a terminal, unless NO_COLOR is set or it is a dumb one.
[[nodiscard]] Look look_of_terminal();

// Text that stands back.
[[nodiscard]] std::string dimmed(const std::string& text, const Look& look);

class AnswerPrinter {
 public:
  explicit AnswerPrinter(const Look& look) : look_(look) {}

  void print(const Piece& piece);
  // The last line has an end, and colours have.
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
