// Above 500 lines because a table of forty small functions reads best in one place.
#include "server/template/jinja/functions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "base/format.h"
#include "base/limits.h"
#include "server/ascii.h"
#include "server/bounded_json.h"

namespace slipstream::jinja {
namespace {

std::int64_t int_or(const Value* value, std::int64_t otherwise) {
  return value == nullptr || value->is_none() ? otherwise : to_int(*value);
}
std::string text_or(const Value* value, std::string_view otherwise) {
  return value == nullptr || value->is_none() ? std::string(otherwise)
                                              : expect_text(*value, "an argument");
}
MarkedText marked_or_empty(const Value* value) {
  if (value == nullptr || value->is_none()) return {};
  (void)expect_text(*value, "an argument");
  return *value->marked();
}
bool bool_or(const Value* value, bool otherwise) {
  return value == nullptr ? otherwise : value->truth();
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// glibc's memmem() takes linear time; std::string_view's find() the product of both lengths, where
// every place nearly matches.
std::size_t find_in(std::string_view text, std::string_view part) {
  if (part.empty()) return 0;
  const void* found = memmem(text.data(), text.size(), part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

// Texts. -------------------------------------------------------------------------------------

std::string map_bytes(std::string text, char (*change)(char, bool), Budget& budget) {
  budget.step(text.size() / 16);
  bool starts_word = true;
  for (char& byte : text) {
    const char old = byte;
    byte = change(byte, starts_word);
    starts_word = !is_name_byte(old) && static_cast<unsigned char>(old) < 0x80;
  }
  return text;
}
char to_upper(char byte, bool) {
  return byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 32) : byte;
}
char to_lower(char byte, bool) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
}
char to_title(char byte, bool starts_word) {
  return starts_word ? to_upper(byte, false) : to_lower(byte, false);
}
// None of these changes a text's length.
MarkedText map_ascii(const MarkedText& text, char (*change)(char, bool), Budget& budget) {
  return text.with_text(map_bytes(text.text(), change, budget));
}
MarkedText capitalize(const MarkedText& text, Budget& budget) {
  std::string lower = map_bytes(text.text(), to_lower, budget);
  if (!lower.empty()) lower[0] = to_upper(lower[0], true);
  return text.with_text(std::move(lower));
}

MarkedText strip(const MarkedText& marked, const Value* set, bool left, bool right,
                 Budget& budget) {
  std::string_view text = marked.text();
  const std::string chars = text_or(set, " \n\r\t\f\v");
  budget.step(text.size() / 64 * (1 + chars.size() / 64));
  // The first or last character, which may be several bytes.
  const auto first = [](std::string_view rest) {
    std::size_t n = 1;
    while (n < rest.size() && is_continuation(rest[n])) ++n;
    return rest.substr(0, n);
  };
  const auto last = [](std::string_view rest) {
    std::size_t n = 1;
    while (n < rest.size() && is_continuation(rest[rest.size() - n])) ++n;
    return rest.substr(rest.size() - n);
  };
  while (left && !text.empty() && chars.contains(first(text)))
    text.remove_prefix(first(text).size());
  while (right && !text.empty() && chars.contains(last(text)))
    text.remove_suffix(last(text).size());
  return marked.slice(text);
}

// There is no memrmem(): what is looked at is charged.
std::size_t rfind_in(std::string_view text, std::string_view part, Budget& budget) {
  for (std::size_t at = text.rfind(part[0]); at != text.npos; at = text.rfind(part[0], at - 1)) {
    budget.step(1 + part.size() / 32);
    if (text.substr(at).starts_with(part)) return at;
    if (at == 0) break;
  }
  return text.npos;
}

std::vector<Value> split_words(const MarkedText& marked, Budget& budget) {
  const std::string_view text = marked.text();
  std::vector<Value> words;
  for (std::size_t i = 0; i < text.size();) {
    if (is_space(text[i])) {
      ++i;
      continue;
    }
    const std::size_t start = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    words.push_back(Value::text(marked.slice(start, i), &budget));
  }
  return words;
}

// At most `max` times, or as often as it can be if that is negative.
std::vector<Value> split_at(const MarkedText& marked, std::string_view separator, std::int64_t max,
                            bool from_right, Budget& budget) {
  std::string_view text = marked.text();
  std::vector<Value> parts;
  const auto add = [&](std::string_view part) {
    budget.step();
    parts.push_back(Value::text(marked.slice(part), &budget));
  };
  while (max < 0 || static_cast<std::int64_t>(parts.size()) < max) {
    budget.step(1 + separator.size() / 32);
    const std::size_t at =
        from_right ? rfind_in(text, separator, budget) : find_in(text, separator);
    if (at == text.npos) break;
    const std::string_view before = text.substr(0, at);
    const std::string_view after = text.substr(at + separator.size());
    add(from_right ? after : before);
    text = from_right ? before : after;
  }
  add(text);
  if (from_right) std::ranges::reverse(parts);
  return parts;
}

Value split(const MarkedText& text, const Arguments& arguments, bool from_right, Budget& budget) {
  budget.step(1 + text.size() / 8);
  const Value* separator = arguments.find(0, "sep");
  const std::int64_t max = int_or(arguments.find(1, "maxsplit"), -1);
  if (separator == nullptr || separator->is_none()) {
    if (max >= 0) fail("split() with a limit needs a separator");
    return Value::list(split_words(text, budget), budget);
  }
  if (expect_text(*separator, "split()").empty())
    fail("split() needs a separator that is not empty");
  return Value::list(split_at(text, *separator->text(), max, from_right, budget), budget);
}

MarkedText replace(const MarkedText& marked, const Arguments& arguments, Budget& budget) {
  const std::string from = text_or(arguments.find(0, "old"), "");
  const MarkedText to = marked_or_empty(arguments.find(1, "new"));
  std::int64_t n_left = int_or(arguments.find(2, "count"), -1);
  if (from.empty()) fail("replace() needs a text that is not empty");
  budget.step(1 + marked.size() / 8);
  const std::string_view text = marked.text();
  MarkedText result;
  std::size_t start = 0;
  for (; n_left != 0; --n_left) {
    const std::size_t found = find_in(text.substr(start), from);
    if (found == text.npos) break;
    budget.step(1 + from.size() / 32);
    result.append(marked, start, start + found);
    result.append(to);
    if (result.size() > kLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
    start += found + from.size();
  }
  result.append(marked, start, text.size());
  return result;
}

// "{}" and "{0}", as in '<{}>'.format(name).
MarkedText fill_in(const MarkedText& marked, const Arguments& arguments, Budget& budget) {
  const std::string_view text = marked.text();
  MarkedText result;
  std::size_t n_used = 0;
  std::size_t start = 0;  // of what stands as it is
  for (std::size_t i = 0; i < text.size(); ++i) {
    budget.step();
    const bool is_doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && is_doubled) {
      result.append(marked, start, ++i);
      start = i + 1;
      continue;
    }
    if (text[i] != '{') continue;
    result.append(marked, start, i);
    const std::size_t end = text.find('}', i);
    if (end == text.npos) fail("format(): '}' is missing");
    const std::string_view field = text.substr(i + 1, end - i - 1);
    const bool is_number = field.size() == 1 && is_digit(field[0]);
    const std::size_t idx = is_number       ? static_cast<std::size_t>(field[0] - '0')
                            : field.empty() ? n_used++
                                            : std::size_t{1} << 30;
    const Value* value = arguments.find(idx, field);
    if (value == nullptr) fail(format_text("format(): nothing for '{{{}}}'", field));
    result.append(to_text(*value, budget));
    if (result.size() > kLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
    i = end;
    start = end + 1;
  }
  result.append(marked, start, text.size());
  return result;
}

MarkedText indent(const MarkedText& text, const Arguments& arguments, Budget& budget) {
  const std::int64_t width = int_or(arguments.find(0, "width"), 4);
  const bool first = bool_or(arguments.find(1, "first"), false);
  const bool blank = bool_or(arguments.find(2, "blank"), false);
  if (width < 0 || width > 256) fail("indent() by at most 256");
  const std::string spaces(static_cast<std::size_t>(width), ' ');
  budget.step(text.size() / 4);
  const std::string& bytes = text.text();
  MarkedText result;
  if (first) result.append(spaces, Origin::kTemplate);
  for (std::size_t start = 0; start < bytes.size();) {
    const std::size_t line_feed = bytes.find('\n', start);
    const std::size_t end = line_feed == bytes.npos ? bytes.size() : line_feed + 1;
    result.append(text, start, end);
    const bool is_blank = end >= bytes.size() || bytes[end] == '\n';
    if (line_feed != bytes.npos && (!is_blank || blank)) result.append(spaces, Origin::kTemplate);
    if (result.size() > kLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
    start = end;
  }
  return result;
}

// Lists. -------------------------------------------------------------------------------------

Value join(const Value& value, const Arguments& arguments, Budget& budget) {
  const MarkedText separator = marked_or_empty(arguments.find(0, "d"));
  const Value* attribute = arguments.find(1, "attribute");
  MarkedText result;
  bool first = true;
  for (const Value& item : items_of(value, budget)) {
    if (!first) result.append(separator);
    first = false;
    result.append(
        to_text(attribute == nullptr ? item : get_item(item, *attribute, budget), budget));
    budget.step(1 + separator.size() / 16);
    if (result.size() > kLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
  }
  return Value::text(std::move(result), &budget);
}

Arguments from(const Arguments& arguments, std::size_t first) {
  Arguments rest{.values = {}, .named = arguments.named};
  for (std::size_t i = first; i < arguments.values.size(); ++i) {
    rest.values.push_back(arguments.values[i]);
  }
  return rest;
}

Value map_items(const Value& value, const Arguments& arguments, Budget& budget) {
  std::vector<Value> result;
  const Value* attribute = arguments.values.empty() ? arguments.find(0, "attribute") : nullptr;
  const Value* otherwise = arguments.find(1'000, "default");
  for (const Value& item : items_of(value, budget)) {
    budget.step();
    if (attribute != nullptr) {
      const Value found = get_item(item, *attribute, budget);
      result.push_back(found.is_undefined() && otherwise != nullptr ? *otherwise : found);
    } else {
      if (arguments.values.empty()) fail("map() needs a filter or an attribute");
      result.push_back(
          call_filter(expect_text(arguments.values[0], "map()"), item, from(arguments, 1), budget));
    }
  }
  return Value::list(std::move(result), budget);
}

// select, reject, selectattr, rejectattr.
Value select(const Value& value, const Arguments& arguments, bool by_attribute, bool wanted,
             Budget& budget) {
  const std::size_t test_idx = by_attribute ? 1 : 0;
  if (by_attribute && arguments.values.empty()) fail("selectattr() needs an attribute");
  std::vector<Value> result;
  for (const Value& item : items_of(value, budget)) {
    const Value tested = by_attribute ? get_item(item, arguments.values[0], budget) : item;
    const bool holds = arguments.values.size() <= test_idx
                           ? tested.truth()
                           : call_test(expect_text(arguments.values[test_idx], "a test"), tested,
                                       from(arguments, test_idx + 1), budget);
    if (holds == wanted) result.push_back(item);
  }
  return Value::list(std::move(result), budget);
}

Value sorted(const Value& value, const Arguments& arguments, Budget& budget) {
  std::vector<Value> items = items_of(value, budget);
  const bool reverse = bool_or(arguments.find(0, "reverse"), false);
  const Value* attribute = arguments.find(2, "attribute");
  const auto key = [&](const Value& item) {
    return attribute == nullptr ? item : get_item(item, *attribute, budget);
  };
  // A comparison that throws must not leave the sort half done: keys are compared before.
  std::ranges::stable_sort(items, [&](const Value& a, const Value& b) {
    budget.step();
    return reverse ? less(key(b), key(a), budget) : less(key(a), key(b), budget);
  });
  return Value::list(std::move(items), budget);
}

Value dict_items(const Dict& dict, Budget& budget) {
  std::vector<Value> pairs;
  for (const auto& [key, item] : dict.items) {
    pairs.push_back(Value::list({dict.key({key, item}), item}, budget));
  }
  return Value::list(std::move(pairs), budget);
}

Value dictsort(const Value& value, Budget& budget) {
  if (value.dict() == nullptr)
    fail(format_text("dictsort needs an object, not {}", value.type_name()));
  std::vector<Dict::Item> items = value.dict()->items;
  budget.step(items.size() * 4);
  const bool by_number = value.dict()->has_integer_keys;
  std::ranges::stable_sort(items, [&](const Dict::Item& a, const Dict::Item& b) {
    if (by_number) return less(value.dict()->key(a), value.dict()->key(b), budget);
    return map_bytes(a.first, to_lower, budget) < map_bytes(b.first, to_lower, budget);
  });
  std::vector<Value> pairs;
  for (const Dict::Item& item : items) {
    pairs.push_back(Value::list({value.dict()->key(item), item.second}, budget));
  }
  return Value::list(std::move(pairs), budget);
}

Value unique(const Value& value, Budget& budget) {
  std::vector<Value> result;
  for (const Value& item : items_of(value, budget)) {
    const bool is_known =
        std::ranges::any_of(result, [&](const Value& old) { return equal(old, item, budget); });
    if (!is_known) result.push_back(item);
  }
  return Value::list(std::move(result), budget);
}

Value extreme(const Value& value, bool largest, Budget& budget) {
  const std::vector<Value> items = items_of(value, budget);
  if (items.empty()) return Value(Undefined{"the extreme of an empty list"});
  const Value* best = items.data();
  for (const Value& item : items) {
    if (largest ? less(*best, item, budget) : less(item, *best, budget)) best = &item;
  }
  return *best;
}

std::int64_t length(const Value& value, Budget& budget) {
  if (value.text() != nullptr) {
    budget.step(value.text()->size() / 16);
    return std::ranges::count_if(*value.text(), [](char byte) { return !is_continuation(byte); });
  }
  if (value.list() != nullptr) return static_cast<std::int64_t>(value.list()->size());
  if (value.dict() != nullptr) return static_cast<std::int64_t>(value.dict()->items.size());
  if (value.is_undefined()) return 0;
  fail(format_text("{} has no length", value.type_name()));
}

// Numbers and JSON. ----------------------------------------------------------------------------

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

using Filter = std::function<Value(const Value&, const Arguments&, Budget&)>;

Filter text_filter(MarkedText (*change)(const MarkedText&, Budget&)) {
  return [change](const Value& value, const Arguments&, Budget& budget) {
    return Value::text(change(to_text(value, budget), budget), &budget);
  };
}

Value default_filter(const Value& value, const Arguments& arguments, Budget& budget) {
  const bool by_truth = bool_or(arguments.find(1, "boolean"), false);
  if (!value.is_undefined() && (!by_truth || value.truth())) return value;
  const Value* otherwise = arguments.find(0, "default_value");
  return otherwise == nullptr ? Value::text({}, &budget) : *otherwise;
}

Value end_of(const Value& value, bool last, Budget& budget) {
  const std::vector<Value> items = items_of(value, budget);
  if (items.empty()) return Value(Undefined{"an item of an empty list"});
  return last ? items.back() : items.front();
}

Value reversed(const Value& value, Budget& budget) {
  if (value.text() != nullptr) {
    MarkedText text;
    const auto all = characters(*value.text(), budget);
    for (auto character = all.rbegin(); character != all.rend(); ++character) {
      text.append(value.marked()->slice(*character));
    }
    return Value::text(std::move(text), &budget);
  }
  std::vector<Value> items = items_of(value, budget);
  std::ranges::reverse(items);
  return Value::list(std::move(items), budget);
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
      {"upper", text_filter([](const MarkedText& t, B b) { return map_ascii(t, to_upper, b); })},
      {"lower", text_filter([](const MarkedText& t, B b) { return map_ascii(t, to_lower, b); })},
      {"title", text_filter([](const MarkedText& t, B b) { return map_ascii(t, to_title, b); })},
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

// Methods. -------------------------------------------------------------------------------------

std::optional<Value> text_method(std::string_view name, const MarkedText& marked,
                                 const Arguments& a, Budget& b) {
  const std::string& text = marked.text();
  const auto as_value = [&b](MarkedText t) { return Value::text(std::move(t), &b); };
  if (name == "strip") return as_value(strip(marked, a.find(0, "chars"), true, true, b));
  if (name == "lstrip") return as_value(strip(marked, a.find(0, "chars"), true, false, b));
  if (name == "rstrip") return as_value(strip(marked, a.find(0, "chars"), false, true, b));
  if (name == "split") return split(marked, a, false, b);
  if (name == "rsplit") return split(marked, a, true, b);
  if (name == "splitlines") {
    const MarkedText lines = marked.slice(0, text.size() - (text.ends_with('\n') ? 1 : 0));
    return Value::list(split_at(lines, "\n", -1, false, b), b);
  }
  if (name == "startswith") return Value(text.starts_with(text_or(a.find(0, "prefix"), "")));
  if (name == "endswith") return Value(text.ends_with(text_or(a.find(0, "suffix"), "")));
  if (name == "upper") return as_value(map_ascii(marked, to_upper, b));
  if (name == "lower") return as_value(map_ascii(marked, to_lower, b));
  if (name == "title") return as_value(map_ascii(marked, to_title, b));
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

Value call_filter(std::string_view name, const Value& value, const Arguments& arguments,
                  Budget& budget) {
  static const std::map<std::string_view, Filter> kFilters = make_filters();
  const auto filter = kFilters.find(name);
  if (filter == kFilters.end()) fail(format_text("unknown filter '{}'", name));
  budget.step();
  return filter->second(value, arguments, budget);
}

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

Value get_item(const Value& value, const Value& index, Budget& budget) {
  budget.step();
  if (index.text() != nullptr) return get_attribute(value, *index.text(), budget);
  if (value.is_undefined()) {
    fail(format_text("'{}' is undefined", value.as<Undefined>()->name()));
  }
  const bool is_integer = index.as<std::int64_t>() != nullptr;
  if (is_integer && value.dict() != nullptr && value.dict()->has_integer_keys) {
    return get_attribute(value, std::to_string(to_int(index)), budget);
  }
  const auto* list = value.list();
  if (!is_integer || (list == nullptr && value.text() == nullptr))
    return Value(Undefined{"an item"});
  if (list != nullptr) {
    const auto n = static_cast<std::int64_t>(list->size());
    const std::int64_t idx = to_int(index) < 0 ? to_int(index) + n : to_int(index);
    if (idx < 0 || idx >= n) return Value(Undefined{"an item beyond the end of a list"});
    return (*list)[static_cast<std::size_t>(idx)];
  }
  const auto all = characters(*value.text(), budget);
  const auto n = static_cast<std::int64_t>(all.size());
  const std::int64_t idx = to_int(index) < 0 ? to_int(index) + n : to_int(index);
  if (idx < 0 || idx >= n) return Value(Undefined{"a character beyond the end of a text"});
  return Value::text(value.marked()->slice(all[static_cast<std::size_t>(idx)]), &budget);
}

Value get_attribute(const Value& value, std::string_view name, Budget& budget) {
  budget.step();
  const Value* found = nullptr;
  if (value.dict() != nullptr) {
    found = value.dict()->find(name);
  } else if (const auto* space = value.as<std::shared_ptr<Namespace>>(); space != nullptr) {
    found = (*space)->find(name, budget);
  } else if (const auto* loop = value.as<std::shared_ptr<Loop>>(); loop != nullptr) {
    const std::vector<Value>& items = (*loop)->items;
    const std::size_t idx = (*loop)->idx;
    const auto integer = [](std::size_t n) { return Value(static_cast<std::int64_t>(n)); };
    if (name == "index") return integer(idx + 1);
    if (name == "index0") return integer(idx);
    if (name == "revindex") return integer(items.size() - idx);
    if (name == "revindex0") return integer(items.size() - idx - 1);
    if (name == "length") return integer(items.size());
    if (name == "first") return Value(idx == 0);
    if (name == "last") return Value(idx + 1 == items.size());
    if (name == "previtem" && idx > 0) return items[idx - 1];
    if (name == "nextitem" && idx + 1 < items.size()) return items[idx + 1];
  } else if (const auto* undefined = value.as<Undefined>(); undefined != nullptr) {
    fail(format_text("'{}' is undefined and has no '{}'", undefined->name(), name));
  }
  return found != nullptr ? *found : Value(Undefined{name});
}

Value get_slice(const Value& value, const Value* start, const Value* end, const Value* step,
                Budget& budget) {
  const std::int64_t n_step = int_or(step, 1);
  if (n_step == 0) fail("a slice has a step of zero");
  const std::vector<Value> items = items_of(value, budget);
  const auto n = static_cast<std::int64_t>(items.size());
  // As in Python: positions from the end are negative, and those beyond it are the end.
  const auto clamp = [&](const Value* at, std::int64_t otherwise) {
    if (at == nullptr || at->is_none()) return otherwise;
    const std::int64_t position = to_int(*at);
    const std::int64_t from_start = position < 0 ? (position < -n ? -1 : position + n) : position;
    return n_step > 0 ? std::clamp<std::int64_t>(from_start, 0, n)
                      : std::clamp<std::int64_t>(from_start, -1, n - 1);
  };
  const std::int64_t first = clamp(start, n_step > 0 ? 0 : n - 1);
  const std::int64_t last = clamp(end, n_step > 0 ? n : -1);
  std::vector<Value> taken;
  for (std::int64_t i = first; n_step > 0 ? i < last : i > last;) {
    taken.push_back(items[static_cast<std::size_t>(i)]);
    // A step beyond the list ends it, and must not overflow.
    if (n_step > n || n_step < -n) break;
    i += n_step;
  }
  if (value.text() == nullptr) return Value::list(std::move(taken), budget);
  MarkedText text;
  for (const Value& character : taken) text.append(*character.marked());
  return Value::text(std::move(text), &budget);
}

bool contains(const Value& container, const Value& value, Budget& budget) {
  budget.step();
  if (container.text() != nullptr) {
    const std::string& part = expect_text(value, "'in'");
    budget.step(1 + (container.text()->size() + part.size()) / 32);
    return find_in(*container.text(), part) != std::string_view::npos;
  }
  if (container.dict() != nullptr) {
    if (container.dict()->has_integer_keys && value.as<std::int64_t>() != nullptr) {
      return container.dict()->find(std::to_string(to_int(value))) != nullptr;
    }
    return value.text() != nullptr && container.dict()->find(*value.text()) != nullptr;
  }
  if (const auto* space = container.as<std::shared_ptr<Namespace>>(); space != nullptr) {
    return value.text() != nullptr && (*space)->find(*value.text(), budget) != nullptr;
  }
  if (container.list() != nullptr) {
    return std::ranges::any_of(*container.list(),
                               [&](const Value& item) { return equal(item, value, budget); });
  }
  if (container.is_undefined()) return false;
  fail(format_text("'in' needs a list, an object or a text, not {}", container.type_name()));
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
