#include "server/template/jinja/filters.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/format.h"
#include "server/ascii.h"
#include "server/bounded_json.h"
#include "server/template/jinja/arguments.h"
#include "server/template/jinja/items.h"
#include "server/template/jinja/list_functions.h"
#include "server/template/jinja/text_functions.h"

namespace slipstream::jinja {
namespace {

Value to_number(const Value& value, const Arguments& arguments, bool is_float) {
  const Value* otherwise = arguments.find(0, "default");
  Value fallback = otherwise != nullptr ? *otherwise
                   : is_float           ? Value(0.0)
                                        : Value(std::int64_t{0});
  double number = 0;
  if (value.is_number()) {
    if (!is_float && value.as<double>() == nullptr) return Value(to_int(value));
    number = to_double(value);
  } else if (value.text() != nullptr) {
    const std::string text(trim(*value.text()));
    char* end = nullptr;
    number = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) return fallback;
  } else {
    return fallback;
  }
  if (is_float) return Value(number);
  if (!(std::fabs(number) < 9e18)) return fallback;
  return Value(static_cast<std::int64_t>(number));
}

Value tojson(const Value& value, const Arguments& arguments, Budget& budget) {
  JsonStyle style;
  const std::int64_t width = int_or(arguments.find(1'000, "indent"), -1);
  if (width > 16) fail("tojson() indents by at most 16");
  style.indent = static_cast<int>(std::max<std::int64_t>(width, -1));
  if (!arguments.values.empty())
    style.indent =
        static_cast<int>(std::clamp<std::int64_t>(int_or(arguments.values.data(), -1), -1, 16));
  style.ascii = bool_or(arguments.find(1'000, "ensure_ascii"), false);
  style.sorted = bool_or(arguments.find(1'000, "sort_keys"), false);
  if (const Value* separators = arguments.find(1'000, "separators"); separators != nullptr) {
    const std::vector<Value> pair = items_of(*separators, budget);
    if (pair.size() != 2) fail("tojson(): separators are two texts");
    style.item_separator = expect_text(pair[0], "tojson()");
    style.key_separator = expect_text(pair[1], "tojson()");
  }
  return Value::text(to_json(value, style, budget), &budget);
}

Value from_json(const Value& value, Budget& budget) {
  const std::string& text = expect_text(value, "from_json");
  constexpr std::size_t kBytesMax = std::size_t{4} << 20;
  if (text.size() > kBytesMax) throw TemplateError{"from_json: the text is too long", true};
  budget.step(text.size() / 4);
  auto json = parse_bounded(text);
  if (!json) fail(format_text("from_json: {}", json.error().message));
  return Value::from_json(std::move(*json), value.marked()->origin(), budget);
}

Value default_filter(const Value& value, const Arguments& arguments, Budget& budget) {
  const bool by_truth = bool_or(arguments.find(1, "boolean"), false);
  if (!value.is_undefined() && (!by_truth || value.truth())) return value;
  const Value* otherwise = arguments.find(0, "default_value");
  return otherwise == nullptr ? Value::text({}, &budget) : *otherwise;
}

using Filter = std::function<Value(const Value&, const Arguments&, Budget&)>;

Filter text_filter(MarkedText (*change)(const MarkedText&, Budget&)) {
  return [change](const Value& value, const Arguments&, Budget& budget) {
    return Value::text(change(to_text(value, budget), budget), &budget);
  };
}

std::map<std::string_view, Filter> make_filters() {
  using V = const Value&;
  using A = const Arguments&;
  using B = Budget&;
  const Filter to_string = [](V v, A, B b) { return Value::text(to_text(v, b), &b); };
  const Filter len = [](V v, A, B b) { return Value(length(v, b)); };
  std::map<std::string_view, Filter> filters = {
      {"tojson", tojson},
      {"from_json", [](V v, A, B b) { return from_json(v, b); }},
      {"length", len},
      {"count", len},
      {"string", to_string},
      {"safe", to_string},
      {"trim",
       [](V v, A a, B b) {
         return Value::text(strip(to_text(v, b), a.find(0, "chars"), true, true, b), &b);
       }},
      {"upper", text_filter(upper)},
      {"lower", text_filter(lower)},
      {"title", text_filter(title)},
      {"capitalize", text_filter(capitalize)},
      {"replace", [](V v, A a, B b) { return Value::text(replace(to_text(v, b), a, b), &b); }},
      {"indent", [](V v, A a, B b) { return Value::text(indent(to_text(v, b), a, b), &b); }},
      {"default", default_filter},
      {"d", default_filter},
      {"join", join},
      {"first", [](V v, A, B b) { return end_of(v, false, b); }},
      {"last", [](V v, A, B b) { return end_of(v, true, b); }},
      {"list", [](V v, A, B b) { return Value::list(items_of(v, b), b); }},
      {"reverse", [](V v, A, B b) { return reversed(v, b); }},
      {"sort", sorted},
      {"unique", [](V v, A, B b) { return unique(v, b); }},
      {"min", [](V v, A, B b) { return extreme(v, false, b); }},
      {"max", [](V v, A, B b) { return extreme(v, true, b); }},
      {"int", [](V v, A a, B) { return to_number(v, a, false); }},
      {"float", [](V v, A a, B) { return to_number(v, a, true); }},
      {"abs",
       [](V v, A, B) {
         if (v.as<double>() != nullptr) return Value(std::fabs(to_double(v)));
         if (to_int(v) == INT64_MIN) fail("a number is too large");
         return Value(std::abs(to_int(v)));
       }},
      {"map", map_items},
      {"select", [](V v, A a, B b) { return select(v, a, false, true, b); }},
      {"reject", [](V v, A a, B b) { return select(v, a, false, false, b); }},
      {"selectattr", [](V v, A a, B b) { return select(v, a, true, true, b); }},
      {"rejectattr", [](V v, A a, B b) { return select(v, a, true, false, b); }},
      {"dictsort", [](V v, A, B b) { return dictsort(v, b); }},
      {"items",
       [](V v, A, B b) {
         if (v.is_undefined()) return Value::list({}, b);
         if (v.dict() == nullptr) fail("items needs an object");
         return dict_items(*v.dict(), b);
       }},
  };
  return filters;
}

}  // namespace

Value call_filter(std::string_view name, const Value& value, const Arguments& arguments,
                  Budget& budget) {
  static const std::map<std::string_view, Filter> kFilters = make_filters();
  const auto filter = kFilters.find(name);
  if (filter == kFilters.end()) fail(format_text("unknown filter '{}'", name));
  budget.step();
  return filter->second(value, arguments, budget);
}

}  // namespace slipstream::jinja
