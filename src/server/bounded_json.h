// parse_bounded(): JSON that a client sent, as a body or inside a string of one.
//
// Everything that a client's text may become JSON goes through here. Nesting, the number of
// values and their memory, many times that of their text, are bounded while it is read; time is
// linear (n log n in one object's members), where ordered_json's own parser looks through all
// members of an object for each new one. Of members with the same name the last counts.
//
// Threads: immutable. Errors: kInvalidArgument for what is no JSON, kUnsupported for too much of
// it.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"
#include "server/json_limits.h"

namespace slipstream {

// nlohmann's destructor first moves all values of an array into another one; this needs no memory.
void destroy(nlohmann::ordered_json& json);
// All values of it, itself included.
[[nodiscard]] std::size_t n_values(const nlohmann::ordered_json& json);

[[nodiscard]] Result<nlohmann::ordered_json> parse_bounded(std::string_view text,
                                                           const JsonLimits& limits = kJsonLimits);

}  // namespace slipstream
