// The string formats that are enforced, as patterns. `format` is more than an annotation here, as
// with OpenAI's strict schemas. A pattern never matches a text that is not of the format. The
// rarest spellings are left out (docs/structured-output.md says which).
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string_view>

namespace slipstream {

// The pattern of the format; nullopt if the format is not enforced.
[[nodiscard]] std::optional<std::string_view> pattern_of_format(std::string_view format);

// Whether JSON Schema defines the format but it is not enforced here. Such a format is refused.
// Other words, such as OpenAPI's int32, are annotations.
[[nodiscard]] bool is_unsupported_format(std::string_view format);

}  // namespace slipstream
