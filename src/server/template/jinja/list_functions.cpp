#include "server/template/jinja/list_functions.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "engine/text/text_limits.h"
#include "server/template/jinja/arguments.h"
#include "server/template/jinja/filters.h"
#include "server/template/jinja/functions.h"
#include "server/template/jinja/items.h"
#include "server/template/jinja/text_functions.h"

namespace slipstream::jinja {
namespace {

Arguments from(const Arguments& arguments, std::size_t first) {
  Arguments rest{.values = {}, .named = arguments.named};
  for (std::size_t i = first; i < arguments.values.size(); ++i) {
    rest.values.push_back(arguments.values[i]);
  }
  return rest;
}

}  // namespace

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
    if (result.size() > kTextLimits.text_bytes_max) throw TemplateError{"a text is too long", true};
  }
  return Value::text(std::move(result), &budget);
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
  // A comparison may throw and leave the sort half done. That is harmless: `items` is a local copy.
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
    return lower_bytes(a.first, budget) < lower_bytes(b.first, budget);
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

}  // namespace slipstream::jinja
