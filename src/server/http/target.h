// The target of a request: what its escapes mean, and the values behind '?'.
//
// Threads: immutable. Errors: none; what is no escape stays.
#pragma once

#include <string>
#include <string_view>

namespace slipstream {

// "org%2Fmodel": names have slashes.
[[nodiscard]] std::string without_percents(std::string_view text);

// The value of name in "/path?name=a+b&other=c": "a b". Empty: there is none.
[[nodiscard]] std::string query_value(std::string_view target, std::string_view name);

}  // namespace slipstream
