// The operations of filters and methods on texts. Marks stay with their bytes.
//
// upper() and similar functions change only ASCII letters. Positions and lengths count characters.
//
// Threads: as Value. Errors: TemplateError for a wrong argument, or a text that grows too long.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

// Takes linear time. Returns npos if the part is not found.
[[nodiscard]] std::size_t find_in(std::string_view text, std::string_view part);
[[nodiscard]] std::int64_t n_characters(std::string_view text, Budget& budget);

[[nodiscard]] MarkedText upper(const MarkedText& text, Budget& budget);
[[nodiscard]] MarkedText lower(const MarkedText& text, Budget& budget);
[[nodiscard]] std::string lower_bytes(std::string text, Budget& budget);
[[nodiscard]] MarkedText title(const MarkedText& text, Budget& budget);
[[nodiscard]] MarkedText capitalize(const MarkedText& text, Budget& budget);

// `set` holds the characters to remove; null means white space.
[[nodiscard]] MarkedText strip(const MarkedText& text, const Value* set, bool left, bool right,
                               Budget& budget);
[[nodiscard]] Value split(const MarkedText& text, const Arguments& arguments, bool from_right,
                          Budget& budget);
[[nodiscard]] Value split_lines(const MarkedText& text, Budget& budget);
[[nodiscard]] MarkedText replace(const MarkedText& text, const Arguments& arguments,
                                 Budget& budget);
// Replaces "{}" and "{0}", as in '<{}>'.format(name).
[[nodiscard]] MarkedText fill_in(const MarkedText& text, const Arguments& arguments,
                                 Budget& budget);
[[nodiscard]] MarkedText indent(const MarkedText& text, const Arguments& arguments, Budget& budget);

}  // namespace slipstream::jinja
