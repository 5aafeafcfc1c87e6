// html_text(): what a reader sees of HTML, each piece on the line on which it stands in the file.
//
// lexbor, a parser of the HTML standard, cuts the text into tags and text. No tree is made: elements
// within each other cost nothing, and time and memory are linear in the text.
//
// Threads: thread-safe. Errors: none; what cannot be read is left out.
#pragma once

#include <string>
#include <string_view>

namespace slipstream {

[[nodiscard]] std::string html_text(std::string_view html);

}  // namespace slipstream
