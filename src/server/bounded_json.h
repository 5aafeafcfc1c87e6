// parse_bounded(): parses JSON that a client sent, as a body or inside a string of a body.
//
// All JSON from clients must be parsed here. Nesting, the number of values and their memory, which
// is many times that of the text, are bounded during parsing. The time is linear (n log n in the
// members of one object); ordered_json's own parser searches all members of an object for each new
// one. If members have the same name, the last counts.
//
// Threads: immutable.
// Errors:  kInvalidArgument if the text is not JSON, kUnsupported if it exceeds a limit.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"
#include "server/json_limits.h"

namespace slipstream {

// Empties the value without allocating memory. nlohmann's destructor first moves all values into
// another array.
void destroy(nlohmann::ordered_json& json);
// The number of values in it, including itself.
[[nodiscard]] std::size_t n_values(const nlohmann::ordered_json& json);

[[nodiscard]] Result<nlohmann::ordered_json> parse_bounded(std::string_view text,
                                                           const JsonLimits& limits = kJsonLimits);

}  // namespace slipstream
