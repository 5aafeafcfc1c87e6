// Operators of expressions, on values that are known.
//
// Threads: as Value. Errors: TemplateError for values that an operator does not take.
#pragma once

#include <string_view>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

// "not", "+", "-".
[[nodiscard]] Value apply_unary(std::string_view symbol, const Value& operand);
// All but "and" and "or", which may leave their right side alone. `line` is for messages.
[[nodiscard]] Value apply_binary(std::string_view symbol, const Value& left, const Value& right,
                                 int line, Budget& budget);

}  // namespace slipstream::jinja
