#include "server/output/content_text.h"

#include "server/ascii.h"
#include "server/output/output_limits.h"

namespace slipstream {

void append_text(ChatDeltas& deltas, ChatDelta::Kind kind, std::string_view text) {
  if (text.empty()) return;
  if (deltas.empty() || deltas.back().kind != kind) deltas.push_back({.kind = kind});
  deltas.back().text += text;
}

void ContentText::push(std::string_view text, ChatDeltas& deltas) {
  for (const char byte : text) {
    if (is_space(byte)) {
      if (drops_space_ && is_empty_) continue;
      if (space_.size() == kOutputLimits.held_space_bytes_max) {
        append_text(deltas, kind_, space_);
        space_.clear();
      }
      space_ += byte;
    } else {
      append_text(deltas, kind_, space_);
      append_text(deltas, kind_, {&byte, 1});
      space_.clear();
      is_empty_ = false;
    }
    last_ = byte;
    track_code_block(byte);
  }
}

void ContentText::meet_markup() {
  space_.clear();
  is_empty_ = true;
  drops_space_ = true;
  last_ = '\n';
  line_start_.clear();
}

void ContentText::finish(ChatDeltas& deltas) {
  if (!(drops_space_ && is_empty_)) append_text(deltas, kind_, space_);
  space_.clear();
}

bool ContentText::ends_with_quote() const { return last_ == '`' || last_ == '"' || last_ == '\''; }

void ContentText::track_code_block(char byte) {
  constexpr std::size_t kIndentMax = 3;
  if (byte == '\n') {
    line_start_.clear();
    return;
  }
  if (line_start_.size() > kIndentMax + 3) return;
  line_start_ += byte;
  const std::size_t n_indent = line_start_.find_first_not_of(' ');
  if (n_indent > kIndentMax) return;
  if (std::string_view(line_start_).substr(n_indent) == "```") in_code_block_ = !in_code_block_;
}

}  // namespace slipstream
