// The formats of strings that are enforced, as patterns: `format` is more than an annotation here,
// as with OpenAI's strict schemas. A pattern allows nothing that is not of the format; the rarest
// spellings are left out (docs/structured-output.md says which).
//
// Threads: pure function. Errors: none.
#pragma once

#include <optional>
#include <string_view>

namespace slipstream {

// Of a format that is enforced.
[[nodiscard]] std::optional<std::string_view> pattern_of_format(std::string_view format);

// A format that JSON Schema defines and that is not enforced, which we refuse. Other words, such as
// OpenAPI's int32, are annotations.
[[nodiscard]] bool is_unsupported_format(std::string_view format);

}  // namespace slipstream
