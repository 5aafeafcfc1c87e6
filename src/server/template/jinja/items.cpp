#include "server/template/jinja/items.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/format.h"
#include "server/template/jinja/arguments.h"
#include "server/template/jinja/text_functions.h"

namespace slipstream::jinja {

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
  // As in Python: negative positions count from the end, and positions beyond the end mean the end.
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
    // A step longer than the list ends the loop. Adding it could overflow.
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

std::int64_t length(const Value& value, Budget& budget) {
  if (value.text() != nullptr) return n_characters(*value.text(), budget);
  if (value.list() != nullptr) return static_cast<std::int64_t>(value.list()->size());
  if (value.dict() != nullptr) return static_cast<std::int64_t>(value.dict()->items.size());
  if (value.is_undefined()) return 0;
  fail(format_text("{} has no length", value.type_name()));
}

}  // namespace slipstream::jinja
