// The tests, methods and functions that templates may use: those of Jinja and Python that
// models' templates use.
//
// Threads: as Value. Errors: TemplateError names what is unknown or wrong.
#pragma once

#include <optional>
#include <string_view>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

// `value is name(arguments)`
[[nodiscard]] bool call_test(std::string_view name, const Value& value, const Arguments& arguments,
                             Budget& budget);
// `value.name(arguments)` for the methods of texts, lists and dicts; nullopt if there is
// no such method.
[[nodiscard]] std::optional<Value> call_method(std::string_view name, const Value& value,
                                               const Arguments& arguments, Budget& budget);
[[nodiscard]] Value make_range(const Arguments& arguments, Budget& budget);

}  // namespace slipstream::jinja
