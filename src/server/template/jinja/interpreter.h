// Renders a parsed template: a walk over the syntax tree that pays for each step.
//
// Nothing a template or its input says can hang it, exhaust memory or overflow the stack: steps,
// bytes and depth are counted where they are spent, and running out is a TemplateError. A template
// can reach nothing but the values it is given.
//
// What comes out of it knows which bytes are of the values rather than of the template.
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
