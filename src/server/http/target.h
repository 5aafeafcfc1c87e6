// The target of a request: its unescaped text, and the values after '?'.
//
// Threads: immutable. Errors: none; an invalid escape stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace slipstream {

// Decodes "org%2Fmodel": names contain slashes.
[[nodiscard]] std::string without_percents(std::string_view text);

// The value of `name` in "/path?name=a+b&other=c": "a b". Empty if there is none.
[[nodiscard]] std::string query_value(std::string_view target, std::string_view name);

}  // namespace slipstream
