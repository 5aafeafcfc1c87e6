// ContentText: the text between markup, as deltas of one kind.
//
// White space at the end is held back until more text follows; if markup follows, it is dropped.
// The class knows what a reader needs to tell markup from text about markup: whether the text has
// begun, whether it ends inside a fenced code block, and its last character.
//
// Threads: thread-compatible. Errors: none.
#pragma once

#include <string>
#include <string_view>

#include "server/output/chat_delta.h"

namespace slipstream {

// Appends to the last delta if it is of the same kind; otherwise adds a delta.
void append_text(ChatDeltas& deltas, ChatDelta::Kind kind, std::string_view text);

class ContentText {
 public:
  explicit ContentText(ChatDelta::Kind kind) : kind_(kind) {}

  void push(std::string_view text, ChatDeltas& deltas);
  // Markup follows. White space before and after it is dropped.
  void meet_markup();
  // The text ends here.
  void finish(ChatDeltas& deltas);

  // There was only white space since the start or the last markup.
  [[nodiscard]] bool is_empty() const { return is_empty_; }
  [[nodiscard]] bool in_code_block() const { return in_code_block_; }
  [[nodiscard]] bool ends_with_quote() const;

 private:
  void track_code_block(char byte);

  ChatDelta::Kind kind_;
  std::string space_;
  bool is_empty_ = true;
  bool drops_space_ = false;
  char last_ = '\n';
  std::string line_start_;
  bool in_code_block_ = false;
};

}  // namespace slipstream
