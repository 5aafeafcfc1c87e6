// The filters that templates may use: those of Jinja and Hugging Face that models' templates use.
//
// Threads: as Value. Errors: TemplateError names what is unknown or wrong.
#pragma once

#include <string_view>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

// `value | name(arguments)`
[[nodiscard]] Value call_filter(std::string_view name, const Value& value,
                                const Arguments& arguments, Budget& budget);

}  // namespace slipstream::jinja
