// The operators of expressions, applied to evaluated operands.
//
// Threads: as Value. Errors: TemplateError for values that an operator does not accept.
#pragma once

#include <string_view>

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

// "not", "+", "-".
[[nodiscard]] Value apply_unary(std::string_view symbol, const Value& operand);
// All operators except "and" and "or", which may skip their right side. `line` is for messages.
[[nodiscard]] Value apply_binary(std::string_view symbol, const Value& left, const Value& right,
                                 int line, Budget& budget);

}  // namespace slipstream::jinja
