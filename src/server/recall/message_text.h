// Texts of messages as clients send them, before a template sees them.
//
// Threads: immutable. Errors: none: what is no text is left alone, the template's reader refuses it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/json.h"

namespace slipstream {

[[nodiscard]] bool is_said_by(const Json& message, std::string_view role);
// The content: a string as it is, the texts of its parts joined by line feeds.
[[nodiscard]] std::string text_of_message(const Json& message);
// Puts the text before the content, with a line feed after it. Returns how many bytes text_of_message()
// has more.
std::size_t put_before_content(Json& message, std::string_view text);

}  // namespace slipstream
