// The operations of filters and methods on lists and dicts.
//
// Threads: as Value. Errors: TemplateError for values that have no items, or no order.
#pragma once

#include "server/template/jinja/value.h"

namespace slipstream::jinja {

[[nodiscard]] Value join(const Value& value, const Arguments& arguments, Budget& budget);
[[nodiscard]] Value map_items(const Value& value, const Arguments& arguments, Budget& budget);
// Implements select, reject, selectattr and rejectattr.
[[nodiscard]] Value select(const Value& value, const Arguments& arguments, bool by_attribute,
                           bool wanted, Budget& budget);
[[nodiscard]] Value sorted(const Value& value, const Arguments& arguments, Budget& budget);
[[nodiscard]] Value unique(const Value& value, Budget& budget);
[[nodiscard]] Value extreme(const Value& value, bool largest, Budget& budget);
[[nodiscard]] Value end_of(const Value& value, bool last, Budget& budget);
// A text is reversed by characters.
[[nodiscard]] Value reversed(const Value& value, Budget& budget);
// Pairs of key and value.
[[nodiscard]] Value dict_items(const Dict& dict, Budget& budget);
[[nodiscard]] Value dictsort(const Value& value, Budget& budget);

}  // namespace slipstream::jinja
