// A prompt whose last message goes on: it ends where that message's text does, without what the
// template writes to close a turn.
//
// Threads: immutable.
// Errors:  kInvalidArgument where there is no text to go on from, or the template changes it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/text/marked_text.h"
#include "server/json.h"

namespace slipstream {

// The text of the last message, as say_for() leaves it. It must be the assistant's.
[[nodiscard]] Result<std::string> text_to_continue(const Json& messages);

// `text`: as of text_to_continue(). The prompt then ends with exactly this, though many templates
// trim it.
[[nodiscard]] Result<MarkedText> cut_behind(const MarkedText& prompt, std::string_view text);

}  // namespace slipstream
