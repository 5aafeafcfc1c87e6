#include "server/schema/shape.h"

#include <algorithm>
#include <set>

namespace slipstream {
namespace {

template <typename T>
void append_new(std::vector<T>& all, const std::vector<T>& more) {
  for (const T& one : more) {
    if (std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
}

// Sorts names and writes numbers as answers do, so that equal values become equal texts.
void append_key(std::string& key, const Json& value) {
  if (value.is_number()) {
    key += decimal_of(value).text();
  } else if (value.is_array()) {
    key += '[';
    for (const Json& item : value) {
      append_key(key, item);
      key += ',';
    }
    key += ']';
  } else if (value.is_object()) {
    std::set<std::string> members;
    for (const auto& [name, member] : value.items()) {
      std::string text = Json(name).dump() + ":";
      append_key(text, member);
      members.insert(std::move(text));
    }
    key += '{';
    for (const std::string& member : members) key += member + ",";
    key += '}';
  } else {
    key += value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
}

}  // namespace

JsonType type_of(const Json& value) {
  if (value.is_null()) return JsonType::kNull;
  if (value.is_boolean()) return JsonType::kBoolean;
  if (value.is_number()) return JsonType::kNumber;
  if (value.is_array()) return JsonType::kArray;
  return value.is_object() ? JsonType::kObject : JsonType::kString;
}

void CountRange::intersect(const CountRange& other) {
  n_min = std::max(n_min, other.n_min);
  if (other.n_max) n_max = std::min(n_max.value_or(*other.n_max), *other.n_max);
}

Conjunction ArrayDemands::of(std::size_t i) const {
  Conjunction all;
  for (const auto& schemas : items) all = both(all, schemas->of(i));
  return all;
}

std::size_t ArrayDemands::n_prefix() const {
  std::size_t n = 0;
  for (const auto& schemas : items) n = std::max(n, schemas->prefix.size());
  return n;
}

Conjunction PropertySchemas::of(const std::string& name) const {
  const auto found = named.find(name);
  bool is_named = found != named.end();
  Conjunction all = is_named ? found->second : Conjunction{};
  for (const Pattern& pattern : patterns) {
    if (!pattern.names->contains(name)) continue;
    is_named = true;
    all = both(all, pattern.schema);
  }
  return is_named ? all : rest;
}

Conjunction ObjectDemands::of(const std::string& name) const {
  Conjunction all;
  for (const auto& schemas : properties) all = both(all, schemas->of(name));
  return all;
}

EnumValue enum_value(const Json& json) {
  EnumValue value{.json = &json, .key = {}};
  append_key(value.key, json);
  return value;
}

void Shape::intersect(const Shape& other) {
  types = types & other.types;
  number.intersect(other.number);
  string.length.intersect(other.string.length);
  append_new(string.languages, other.string.languages);
  array.count.intersect(other.array.count);
  append_new(array.items, other.array.items);
  object.count.intersect(other.object.count);
  object.required.insert(other.object.required.begin(), other.object.required.end());
  append_new(object.properties, other.object.properties);
  object.names = both(object.names, other.object.names);
  if (!other.values) return;
  if (!values) {
    values = other.values;
    return;
  }
  std::set<std::string_view> keys;
  for (const EnumValue& value : *other.values) keys.insert(value.key);
  std::erase_if(*values, [&keys](const EnumValue& value) { return !keys.contains(value.key); });
}

}  // namespace slipstream
