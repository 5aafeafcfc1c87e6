// The filters, tests, methods and functions that templates may use: those of Jinja, Python and
// Hugging Face that the templates of models do use.
//
// Letters are ASCII for upper() and its like; positions and lengths count characters.
//
// Threads: as Value. Errors: TemplateError names what is unknown or wrong.
#pragma once

#include <optional>
#include <string_view>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

// `value | name(arguments)`
[[nodiscard]] Value call_filter(std::string_view name, const Value& value,
                                const Arguments& arguments, Budget& budget);
// `value is name(arguments)`
[[nodiscard]] bool call_test(std::string_view name, const Value& value, const Arguments& arguments,
                             Budget& budget);
// `value.name(arguments)`, for the methods of texts, lists and dicts; nothing if there is none.
[[nodiscard]] std::optional<Value> call_method(std::string_view name, const Value& value,
                                               const Arguments& arguments, Budget& budget);
// value[index] and value.name: undefined if it is not there.
[[nodiscard]] Value get_item(const Value& value, const Value& index, Budget& budget);
[[nodiscard]] Value get_attribute(const Value& value, std::string_view name, Budget& budget);
[[nodiscard]] Value get_slice(const Value& value, const Value* start, const Value* end,
                              const Value* step, Budget& budget);
[[nodiscard]] bool contains(const Value& container, const Value& value, Budget& budget);
[[nodiscard]] Value make_range(const Arguments& arguments, Budget& budget);

}  // namespace slipstream::jinja
