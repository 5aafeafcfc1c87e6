#include "cli/chat/terminal_text.h"

#include <gtest/gtest.h>

namespace slipstream::chat {
namespace {

TEST(TerminalText, LeavesTextAsItIs) {
  const std::string text = "Grüße, 世界 🙂\n\tdone";
  EXPECT_EQ(terminal_text(text), text);
}

TEST(TerminalText, WritesControlCharactersOut) {
  EXPECT_EQ(terminal_text("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(terminal_text("a\rb\x7f"), "a\\x0db\\x7f");
  EXPECT_EQ(terminal_text(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(terminal_text("\xc2\x9b"
                          "31m"),
            "\\x9b31m");  // CSI in one character
}

TEST(TerminalText, WritesOutWhatIsNoText) {
  EXPECT_EQ(terminal_text("\x9b"), "\\x9b");
  EXPECT_EQ(terminal_text("\xc0\x9b"), "\\xc0\\x9b");           // longer than necessary
  EXPECT_EQ(terminal_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(terminal_text("\xf0\x9f\x99"), "\\xf0\\x9f\\x99");  // cut off
}

}  // namespace
}  // namespace slipstream::chat
