// Makes text of a model or a server safe for a terminal: it cannot move the cursor, change colours
// or titles, or make the terminal reply.
//
// Threads: immutable. Errors: none.
#pragma once

#include <string>
#include <string_view>

namespace slipstream::chat {

// Line feeds and tabs stay. Every other control character of ASCII (escape) or Unicode (U+0080 to
// U+009F, which some terminals obey) and every byte that is not UTF-8 is written out: "\x1b".
[[nodiscard]] std::string terminal_text(std::string_view text);

}  // namespace slipstream::chat
