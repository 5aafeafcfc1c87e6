// Access to the parts of a value: by index, by name, as a slice, membership, and the
// number of parts.
//
// Positions and lengths of texts count characters.
//
// Threads: as Value. Errors: TemplateError for a value that has no parts.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

// value[index] and value.name; undefined if there is no such item.
[[nodiscard]] Value get_item(const Value& value, const Value& index, Budget& budget);
[[nodiscard]] Value get_attribute(const Value& value, std::string_view name, Budget& budget);
[[nodiscard]] Value get_slice(const Value& value, const Value* start, const Value* end,
                              const Value* step, Budget& budget);
[[nodiscard]] bool contains(const Value& container, const Value& value, Budget& budget);
[[nodiscard]] std::int64_t length(const Value& value, Budget& budget);

}  // namespace slipstream::jinja
