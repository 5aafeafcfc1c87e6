#include "server/schema/keyword_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "server/schema/regex_automaton.h"
#include "server/schema/schema_error.h"
#include "server/schema/schema_limits.h"
#include "server/schema/string_formats.h"

namespace slipstream {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, word) != words.end();
}

// These demand nothing. The schemas in $defs are read where a reference leads to them.
bool is_annotation(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"$comment", "$defs", "$anchor", "definitions", "title", "description", "default", "examples",
       "deprecated", "readOnly", "writeOnly"});
  return is_one_of(name, kNames) || name.starts_with("x-");
}

// Accepts JSON Schema's own drafts. Another metaschema may give its keywords an unknown meaning.
bool is_own_dialect(const Json& value) {
  if (!value.is_string()) return false;
  const std::string_view address = value.get_ref<const std::string&>();
  return address.starts_with("http://json-schema.org/") ||
         address.starts_with("https://json-schema.org/");
}

// SchemaExpander reads these keywords.
bool leads_to_schemas(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>({"$ref", "allOf", "anyOf", "oneOf"});
  return is_one_of(name, kNames);
}

bool is_bound(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"});
  return is_one_of(name, kNames);
}

}  // namespace

Result<Shape> KeywordReader::read(SchemaId id) {
  Parts parts;
  for (const auto& [name, value] : document_.json(id).items()) {
    const Keyword keyword{id, name, value, pointer_to(document_.pointer(id), name)};
    if (const Result<void> spent = budget_.spend(1 + value.size()); !spent) {
      return refuse(keyword.pointer, spent.error());
    }
    if (const Result<void> done = read_keyword(keyword, parts); !done) {
      return std::unexpected(done.error());
    }
  }
  if (parts.has_items) {
    parts.shape.array.items.push_back(std::make_shared<ItemSchemas>(std::move(parts.items)));
  }
  if (parts.has_properties) {
    parts.shape.object.properties.push_back(
        std::make_shared<PropertySchemas>(std::move(parts.properties)));
  }
  return std::move(parts.shape);
}

Result<void> KeywordReader::read_keyword(const Keyword& keyword, Parts& parts) {
  const std::string_view name = keyword.name;
  Shape& shape = parts.shape;
  if (is_annotation(name) || leads_to_schemas(name)) return {};
  if (name == "$schema" && is_own_dialect(keyword.value)) return {};
  if (name == "$id" && keyword.schema == document_.root()) return {};
  if (name == "type") return read_type(keyword, shape);
  if (name == "enum" || name == "const") return read_values(keyword, shape);
  if (is_bound(name)) return read_bound(keyword, shape.number);
  if (name == "multipleOf") return read_multiple(keyword, shape.number);
  if (name == "minLength" || name == "maxLength") return read_count(keyword, shape.string.length);
  if (name == "pattern" || name == "format") return read_language(keyword, shape.string);
  if (name == "minItems" || name == "maxItems") return read_count(keyword, shape.array.count);
  if (name == "minProperties" || name == "maxProperties") {
    return read_count(keyword, shape.object.count);
  }
  if (name == "required") return read_required(keyword, shape.object);
  if (name == "uniqueItems" && keyword.value == false) return {};
  if (name == "not" && (keyword.value.is_boolean() || keyword.value == Json::object())) {
    if (keyword.value != false) shape.types = {};
    return {};
  }
  if (name == "prefixItems") {
    parts.has_items = true;
    return read_prefix_items(keyword, parts.items);
  }
  if (name == "properties" || name == "patternProperties") {
    parts.has_properties = true;
    return name == "properties" ? read_properties(keyword, parts.properties)
                                : read_patterns(keyword, parts.properties);
  }
  // The remaining known keywords have a schema as their value.
  const bool is_items = name == "items";
  const bool is_rest = name == "additionalProperties";
  if (!is_items && !is_rest && name != "propertyNames") {
    return refuse(Code::kUnsupported, keyword.pointer, "this keyword cannot be obeyed");
  }
  Result<Conjunction> schema = read_schema(keyword.value, keyword.pointer);
  if (!schema) return std::unexpected(schema.error());
  parts.has_items = parts.has_items || is_items;
  parts.has_properties = parts.has_properties || is_rest;
  (is_items  ? parts.items.rest
   : is_rest ? parts.properties.rest
             : shape.object.names) = std::move(*schema);
  return {};
}

Result<void> KeywordReader::read_type(const Keyword& keyword, Shape& shape) {
  TypeSet types;
  bool has_integer = false;
  bool has_number = false;
  const auto add = [&](const Json& name) {
    constexpr std::array<std::pair<std::string_view, JsonType>, 6> kTypes = {{
        {"null", JsonType::kNull},
        {"boolean", JsonType::kBoolean},
        {"number", JsonType::kNumber},
        {"string", JsonType::kString},
        {"array", JsonType::kArray},
        {"object", JsonType::kObject},
    }};
    has_integer = has_integer || name == "integer";
    has_number = has_number || name == "number";
    if (name == "integer") types.add(JsonType::kNumber);
    for (const auto& [word, type] : kTypes) {
      if (name == word) types.add(type);
    }
    return name == "integer" ||
           std::ranges::any_of(kTypes, [&name](const auto& type) { return name == type.first; });
  };
  const bool all_known = keyword.value.is_array()
                             ? !keyword.value.empty() && std::ranges::all_of(keyword.value, add)
                             : add(keyword.value);
  if (!all_known) return refuse(Code::kInvalidArgument, keyword.pointer, "no type of JSON Schema");
  shape.types = shape.types & types;
  shape.number.is_integer = shape.number.is_integer || (has_integer && !has_number);
  return {};
}

Result<void> KeywordReader::read_values(const Keyword& keyword, Shape& shape) {
  Shape allowed;
  allowed.values.emplace();
  if (keyword.name == "const") {
    allowed.values->push_back(enum_value(keyword.value));
  } else if (keyword.value.is_array()) {
    std::set<std::string> keys;
    for (const Json& value : keyword.value) {
      EnumValue one = enum_value(value);
      if (keys.insert(one.key).second) allowed.values->push_back(std::move(one));
    }
  } else {
    return refuse(Code::kInvalidArgument, keyword.pointer, "expected an array");
  }
  shape.intersect(allowed);
  return {};
}

Result<void> KeywordReader::read_bound(const Keyword& keyword, NumberRange& range) {
  if (!keyword.value.is_number()) {
    return refuse(Code::kInvalidArgument, keyword.pointer, "expected a number");
  }
  const NumberRange::Bound bound{decimal_of(keyword.value), keyword.name.starts_with("exclusive")};
  const bool is_low = keyword.name == "minimum" || keyword.name == "exclusiveMinimum";
  constexpr std::size_t kDigitsMax = NumberRange::kDigitsMax;
  if (bound.value.whole.size() > kDigitsMax || bound.value.fraction.size() > kDigitsMax) {
    return refuse(Code::kUnsupported, keyword.pointer,
                  format_text("more than {} digits before or after the point", kDigitsMax));
  }
  if (is_low) {
    range.raise_low(bound);
  } else {
    range.lower_high(bound);
  }
  return {};
}

Result<void> KeywordReader::read_multiple(const Keyword& keyword, NumberRange& range) {
  if (!keyword.value.is_number() || keyword.value <= 0) {
    return refuse(Code::kInvalidArgument, keyword.pointer, "expected a number above 0");
  }
  NumberRange one;
  one.multiples.push_back(decimal_of(keyword.value));
  if (!one.has_small_multiples()) {
    return refuse(Code::kUnsupported, keyword.pointer,
                  format_text("the digits of a multiple may be {} at most, the point left out",
                              kSchemaLimits.multiple_of_max));
  }
  range.intersect(one);
  return {};
}

Result<void> KeywordReader::read_count(const Keyword& keyword, CountRange& range) {
  const Json& value = keyword.value;
  // JSON Schema treats 2.0 as 2.
  const bool is_count = value.is_number() && value >= 0 && decimal_of(value).fraction.empty();
  if (!is_count) {
    return refuse(Code::kInvalidArgument, keyword.pointer, "expected an integer, 0 or more");
  }
  // This is far past all limits, and safe to calculate with.
  constexpr std::size_t kCountMax = std::size_t{1} << 31;
  const std::size_t n = value >= kCountMax ? kCountMax : value.get<std::size_t>();
  CountRange one;
  if (keyword.name.starts_with("min")) {
    one.n_min = n;
  } else {
    one.n_max = n;
  }
  range.intersect(one);
  return {};
}

Result<void> KeywordReader::read_language(const Keyword& keyword, StringDemands& string) {
  if (!keyword.value.is_string()) {
    return refuse(Code::kInvalidArgument, keyword.pointer, "expected a string");
  }
  std::string_view pattern = keyword.value.get_ref<const std::string&>();
  if (keyword.name == "format") {
    if (is_unsupported_format(pattern)) {
      return refuse(Code::kUnsupported, keyword.pointer, "this format cannot be obeyed");
    }
    const std::optional<std::string_view> found = pattern_of_format(pattern);
    if (!found) return {};  // an annotation: JSON Schema ignores unknown formats
    pattern = *found;
  }
  Result<std::shared_ptr<const Automaton>> texts = language(pattern, keyword.pointer);
  if (!texts) return std::unexpected(texts.error());
  string.languages.push_back(std::move(*texts));
  return {};
}

Result<void> KeywordReader::read_prefix_items(const Keyword& keyword, ItemSchemas& items) {
  if (!keyword.value.is_array() || keyword.value.empty()) {
    return refuse(Code::kInvalidArgument, keyword.pointer, "expected an array of schemas");
  }
  for (std::size_t i = 0; i < keyword.value.size(); ++i) {
    Result<Conjunction> schema =
        read_schema(keyword.value[i], pointer_to(keyword.pointer, std::to_string(i)));
    if (!schema) return std::unexpected(schema.error());
    items.prefix.push_back(std::move(*schema));
  }
  return {};
}

Result<void> KeywordReader::read_properties(const Keyword& keyword, PropertySchemas& properties) {
  if (!keyword.value.is_object()) {
    return refuse(Code::kInvalidArgument, keyword.pointer, "expected an object of schemas");
  }
  for (const auto& [name, value] : keyword.value.items()) {
    Result<Conjunction> schema = read_schema(value, pointer_to(keyword.pointer, name));
    if (!schema) return std::unexpected(schema.error());
    properties.named[name] = std::move(*schema);
    properties.order.push_back(name);
  }
  return {};
}

Result<void> KeywordReader::read_patterns(const Keyword& keyword, PropertySchemas& properties) {
  if (!keyword.value.is_object()) {
    return refuse(Code::kInvalidArgument, keyword.pointer, "expected an object of schemas");
  }
  for (const auto& [pattern, value] : keyword.value.items()) {
    const std::string pointer = pointer_to(keyword.pointer, pattern);
    Result<Conjunction> schema = read_schema(value, pointer);
    if (!schema) return std::unexpected(schema.error());
    Result<std::shared_ptr<const Automaton>> names = language(pattern, pointer);
    if (!names) return std::unexpected(names.error());
    properties.patterns.push_back({std::move(*names), std::move(*schema)});
  }
  return {};
}

Result<void> KeywordReader::read_required(const Keyword& keyword, ObjectDemands& object) {
  const bool are_names =
      keyword.value.is_array() &&
      std::ranges::all_of(keyword.value, [](const Json& name) { return name.is_string(); });
  if (!are_names) return refuse(Code::kInvalidArgument, keyword.pointer, "expected names");
  for (const Json& name : keyword.value) object.required.insert(name.get<std::string>());
  return {};
}

Result<Conjunction> KeywordReader::read_schema(const Json& value, std::string pointer) {
  if (!value.is_object() && !value.is_boolean()) {
    return refuse(Code::kInvalidArgument, pointer, "expected a schema: an object or a boolean");
  }
  return document_.conjunction_at(value, std::move(pointer));
}

Result<std::shared_ptr<const Automaton>> KeywordReader::language(std::string_view pattern,
                                                                 std::string_view pointer) {
  std::shared_ptr<const Automaton>& known = languages_[std::string(pattern)];
  if (!known) {
    Result<Automaton> made = automaton_of_pattern(pattern, budget_);
    if (!made) return refuse(pointer, made.error());
    known = std::make_shared<const Automaton>(std::move(*made));
  }
  return known;
}

}  // namespace slipstream
