#include "server/template/jinja/functions.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "server/ascii.h"
#include "server/template/jinja/arguments.h"
#include "server/template/jinja/items.h"
#include "server/template/jinja/list_functions.h"
#include "server/template/jinja/text_functions.h"

namespace slipstream::jinja {
namespace {

std::optional<Value> text_method(std::string_view name, const MarkedText& marked,
                                 const Arguments& a, Budget& b) {
  const std::string& text = marked.text();
  const auto as_value = [&b](MarkedText t) { return Value::text(std::move(t), &b); };
  if (name == "strip") return as_value(strip(marked, a.find(0, "chars"), true, true, b));
  if (name == "lstrip") return as_value(strip(marked, a.find(0, "chars"), true, false, b));
  if (name == "rstrip") return as_value(strip(marked, a.find(0, "chars"), false, true, b));
  if (name == "split") return split(marked, a, false, b);
  if (name == "rsplit") return split(marked, a, true, b);
  if (name == "splitlines") return split_lines(marked, b);
  if (name == "startswith") return Value(text.starts_with(text_or(a.find(0, "prefix"), "")));
  if (name == "endswith") return Value(text.ends_with(text_or(a.find(0, "suffix"), "")));
  if (name == "upper") return as_value(upper(marked, b));
  if (name == "lower") return as_value(lower(marked, b));
  if (name == "title") return as_value(title(marked, b));
  if (name == "capitalize") return as_value(capitalize(marked, b));
  if (name == "replace") return as_value(replace(marked, a, b));
  if (name == "format") return as_value(fill_in(marked, a, b));
  if (name == "find") {
    const std::size_t at = find_in(text, text_or(a.find(0, "sub"), ""));
    if (at == text.npos) return Value(std::int64_t{-1});
    return Value(length(as_value(marked.slice(0, at)), b));
  }
  if (name == "join") {
    if (a.values.empty()) fail("join() needs a list");
    return join(a.values[0], {.values = {as_value(marked)}, .named = {}}, b);
  }
  if (name == "isdigit") return Value(!text.empty() && std::ranges::all_of(text, is_digit));
  return std::nullopt;
}

std::optional<Value> dict_method(std::string_view name, const Dict& dict, const Arguments& a,
                                 Budget& b) {
  if (name == "items") return dict_items(dict, b);
  if (name == "get") {
    const Value* key = a.find(0, "key");
    const Value* found =
        key != nullptr && key->text() != nullptr ? dict.find(*key->text()) : nullptr;
    if (found != nullptr) return *found;
    const Value* otherwise = a.find(1, "default");
    return otherwise == nullptr ? Value(None{}) : *otherwise;
  }
  if (name == "keys" || name == "values") {
    std::vector<Value> result;
    for (const auto& [key, item] : dict.items) {
      result.push_back(name == "keys" ? dict.key({key, item}) : item);
    }
    return Value::list(std::move(result), b);
  }
  return std::nullopt;
}

std::optional<Value> list_method(std::string_view name, List& list, const Arguments& a, Budget& b) {
  if (name == "append") {
    if (a.values.size() != 1) fail("append() takes one value");
    list.append(a.values[0]);
    return Value(None{});
  }
  if (name == "pop") {
    const std::int64_t n = static_cast<std::int64_t>(list.items.size());
    std::int64_t idx = int_or(a.find(0, "index"), -1);
    if (idx < 0) idx += n;
    if (idx < 0 || idx >= n) fail("pop() from beyond the end of a list");
    b.step(list.items.size() / 8);
    Value value = list.items[static_cast<std::size_t>(idx)];
    list.remove(static_cast<std::size_t>(idx));
    return value;
  }
  return std::nullopt;
}

}  // namespace

bool call_test(std::string_view name, const Value& value, const Arguments& arguments,
               Budget& budget) {
  budget.step();
  const auto argument = [&]() -> const Value& {
    if (arguments.values.empty()) fail(format_text("the test '{}' needs a value", name));
    return arguments.values[0];
  };
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "string") return value.text() != nullptr;
  if (name == "mapping") return value.dict() != nullptr;
  if (name == "sequence" || name == "iterable") {
    return value.list() != nullptr || value.dict() != nullptr || value.text() != nullptr ||
           value.is_undefined();
  }
  if (name == "number") return value.is_number();
  if (name == "integer") return value.as<std::int64_t>() != nullptr;
  if (name == "float") return value.as<double>() != nullptr;
  if (name == "boolean") return value.as<bool>() != nullptr;
  if (name == "true") return value.as<bool>() != nullptr && value.truth();
  if (name == "false") return value.as<bool>() != nullptr && !value.truth();
  if (name == "callable") {
    return value.as<const Macro*>() != nullptr || value.as<Value::Function>() != nullptr;
  }
  if (name == "odd") return to_int(value) % 2 != 0;
  if (name == "even") return to_int(value) % 2 == 0;
  if (name == "equalto" || name == "eq" || name == "sameas")
    return equal(value, argument(), budget);
  if (name == "ne") return !equal(value, argument(), budget);
  if (name == "in") return contains(argument(), value, budget);
  fail(format_text("unknown test '{}'", name));
}

std::optional<Value> call_method(std::string_view name, const Value& value,
                                 const Arguments& arguments, Budget& budget) {
  budget.step();
  if (value.text() != nullptr) {
    budget.step(value.text()->size() / 64);
    return text_method(name, *value.marked(), arguments, budget);
  }
  if (value.dict() != nullptr) return dict_method(name, *value.dict(), arguments, budget);
  if (value.shared_list() != nullptr) {
    return list_method(name, **value.shared_list(), arguments, budget);
  }
  return std::nullopt;
}

Value make_range(const Arguments& arguments, Budget& budget) {
  const std::vector<Value>& v = arguments.values;
  if (v.empty() || v.size() > 3) fail("range() takes one to three numbers");
  const std::int64_t start = v.size() > 1 ? to_int(v[0]) : 0;
  const std::int64_t end = v.size() > 1 ? to_int(v[1]) : to_int(v[0]);
  const std::int64_t step = v.size() > 2 ? to_int(v[2]) : 1;
  constexpr std::int64_t kMax = 1'000'000;
  const auto is_small = [](std::int64_t number) {
    return number > -(1LL << 40) && number < (1LL << 40);
  };
  if (step == 0) fail("range() needs a step that is not zero");
  if (!is_small(start) || !is_small(end) || !is_small(step)) fail("range() of too large numbers");
  const std::int64_t n_items =
      std::max<std::int64_t>(0, (end - start + step - (step > 0 ? 1 : -1)) / step);
  if (n_items > kMax) throw TemplateError{"range() is too long", true};
  std::vector<Value> items;
  for (std::int64_t i = 0; i < n_items; ++i) items.emplace_back(start + i * step);
  return Value::list(std::move(items), budget);
}

}  // namespace slipstream::jinja
