// Renders a parsed template by walking the syntax tree. Every step is charged to the budget.
//
// No template or input can make it hang, exhaust memory or overflow the stack: steps, bytes and
// depth are counted where they are spent, and exceeding a limit is a TemplateError. A template can
// reach only the values that it is given.
//
// The output knows which of its bytes come from the values rather than from the template.
//
// Threads: thread-compatible; templates may be rendered by several threads at once.
// Errors:  TemplateError with the line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/template/jinja/syntax.h"

namespace slipstream::jinja {

// `globals` are the template's variables and functions, made with this budget.
[[nodiscard]] MarkedText render(const Block& block,
                                std::vector<std::pair<std::string, Value>> globals, Budget& budget);

}  // namespace slipstream::jinja
