#include "server/schema/schema_expander.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "server/schema/disjoint_shapes.h"
#include "server/schema/schema_error.h"
#include "server/schema/schema_limits.h"
#include "server/schema/string_language.h"

namespace slipstream {
namespace {

// The cost of copying and merging a shape.
std::size_t n_steps(const Shape& shape) {
  return 8 + 4 * shape.object.required.size() + shape.object.properties.size() +
         shape.array.items.size() + shape.string.languages.size() +
         4 * (shape.values ? shape.values->size() : 0);
}

}  // namespace

Result<SchemaExpander::SharedShapes> SchemaExpander::shapes_of(const Conjunction& schemas) {
  if (const auto known = of_schemas_.find(schemas); known != of_schemas_.end()) {
    return known->second;
  }
  Shapes all(1);
  for (const SchemaId id : schemas) {
    Result<Shapes> merged = merge(all, id);
    if (!merged) return std::unexpected(merged.error());
    all = std::move(*merged);
  }
  return of_schemas_[schemas] = std::make_shared<const Shapes>(std::move(all));
}

Result<SchemaExpander::SharedShapes> SchemaExpander::shapes_of(SchemaId id) {
  if (const auto known = of_schema_.find(id); known != of_schema_.end()) return known->second;
  if (std::ranges::find(open_, id) != open_.end()) {
    return refuse(Code::kInvalidArgument, document_.pointer(id),
                  "refers to itself without a value in between");
  }
  if (open_.size() == kSchemaLimits.schema_nesting_max) {
    return refuse(Code::kUnsupported, document_.pointer(id),
                  format_text("more than {} references, allOf, anyOf and oneOf in each other",
                              kSchemaLimits.schema_nesting_max));
  }
  open_.push_back(id);
  Result<Shapes> shapes = expand(id);
  open_.pop_back();
  if (!shapes) return std::unexpected(shapes.error());
  return of_schema_[id] = std::make_shared<const Shapes>(std::move(*shapes));
}

Result<Shapes> SchemaExpander::expand(SchemaId id) {
  const Json& json = document_.json(id);
  if (json.is_boolean()) return Shapes(json.get<bool>() ? 1 : 0);
  if (!json.is_object()) {
    return refuse(Code::kInvalidArgument, document_.pointer(id),
                  "expected a schema: an object or a boolean");
  }
  Result<Shape> own = reader_.read(id);
  if (!own) return std::unexpected(own.error());
  Shapes shapes;
  if (!own->empty()) shapes.push_back(std::move(*own));
  using Step = Result<void> (SchemaExpander::*)(SchemaId, Shapes&);
  // oneOf comes last: the more is known about its branches, the more of them are seen
  // to be disjoint.
  for (const Step step : {&SchemaExpander::follow_reference, &SchemaExpander::merge_all,
                          &SchemaExpander::choose_any, &SchemaExpander::choose_one}) {
    if (const Result<void> done = (this->*step)(id, shapes); !done) {
      return std::unexpected(done.error());
    }
  }
  return shapes;
}

Result<void> SchemaExpander::follow_reference(SchemaId id, Shapes& shapes) {
  const Json& json = document_.json(id);
  const auto reference = json.find("$ref");
  if (reference == json.end()) return {};
  if (!reference->is_string()) {
    return refuse(Code::kInvalidArgument, document_.pointer(id) + "/$ref", "expected a string");
  }
  const Result<SchemaId> target = document_.resolve(reference->get_ref<const std::string&>(), id);
  if (!target) return std::unexpected(target.error());
  const Result<SharedShapes> referred = shapes_of(*target);
  if (!referred) return std::unexpected(referred.error());
  Result<Shapes> merged = product(shapes, **referred);
  if (!merged) return refuse(document_.pointer(id) + "/$ref", merged.error());
  shapes = std::move(*merged);
  return {};
}

Result<void> SchemaExpander::merge_all(SchemaId id, Shapes& shapes) {
  const Result<std::vector<SchemaId>> branches = listed(id, "allOf");
  if (!branches) return std::unexpected(branches.error());
  for (const SchemaId branch : *branches) {
    Result<Shapes> merged = merge(shapes, branch);
    if (!merged) return std::unexpected(merged.error());
    shapes = std::move(*merged);
  }
  return {};
}

Result<void> SchemaExpander::choose_any(SchemaId id, Shapes& shapes) {
  const Result<std::vector<SchemaId>> branches = listed(id, "anyOf");
  if (!branches) return std::unexpected(branches.error());
  if (branches->empty()) return {};
  Shapes any;
  for (const SchemaId branch : *branches) {
    Result<Shapes> merged = merge(shapes, branch);
    if (!merged) return std::unexpected(merged.error());
    if (any.size() + merged->size() > kSchemaLimits.schema_shapes_max) {
      return refuse(Code::kUnsupported, document_.pointer(branch),
                    format_text("more than {} alternatives", kSchemaLimits.schema_shapes_max));
    }
    std::ranges::move(*merged, std::back_inserter(any));
  }
  shapes = std::move(any);
  return {};
}

Result<void> SchemaExpander::choose_one(SchemaId id, Shapes& shapes) {
  const Result<std::vector<SchemaId>> branches = listed(id, "oneOf");
  if (!branches) return std::unexpected(branches.error());
  if (branches->empty()) return {};
  Shapes any;
  for (const SchemaId branch : *branches) {
    const Result<Shapes> merged = merge(shapes, branch);
    if (!merged) return std::unexpected(merged.error());
    const Result<bool> apart = DisjointShapes(*this).are_disjoint(any, *merged);
    if (!apart) return refuse(document_.pointer(branch), apart.error());
    if (!*apart || any.size() + merged->size() > kSchemaLimits.schema_shapes_max) {
      return refuse(Code::kUnsupported, document_.pointer(branch),
                    "a value might match an earlier branch of oneOf too; use anyOf, or a required "
                    "property with another const in each branch");
    }
    any.insert(any.end(), merged->begin(), merged->end());
  }
  shapes = std::move(any);
  return {};
}

Result<Shapes> SchemaExpander::merge(const Shapes& shapes, SchemaId id) {
  const Result<SharedShapes> others = shapes_of(id);
  if (!others) return std::unexpected(others.error());
  Result<Shapes> merged = product(shapes, **others);
  if (!merged) return refuse(document_.pointer(id), merged.error());
  return merged;
}

Result<std::vector<SchemaId>> SchemaExpander::listed(SchemaId id, const char* keyword) {
  const Json& json = document_.json(id);
  const auto list = json.find(keyword);
  if (list == json.end()) return {};
  const std::string pointer = pointer_to(document_.pointer(id), keyword);
  if (!list->is_array() || list->empty()) {
    return refuse(Code::kInvalidArgument, pointer, "expected an array of schemas");
  }
  std::vector<SchemaId> schemas;
  for (std::size_t i = 0; i < list->size(); ++i) {
    schemas.push_back(document_.schema_at((*list)[i], pointer_to(pointer, std::to_string(i))));
  }
  return schemas;
}

Result<Shapes> SchemaExpander::product(const Shapes& a, const Shapes& b) {
  Shapes all;
  for (const Shape& one : a) {
    for (const Shape& other : b) {
      if (const Result<void> spent = budget_.spend(n_steps(one) + n_steps(other)); !spent) {
        return std::unexpected(spent.error());
      }
      Shape merged = one;
      merged.intersect(other);
      if (!merged.empty()) all.push_back(std::move(merged));
      if (all.size() > kSchemaLimits.schema_shapes_max) {
        return fail(Code::kUnsupported,
                    format_text("more than {} alternatives", kSchemaLimits.schema_shapes_max));
      }
    }
  }
  return all;
}

Result<bool> SchemaExpander::is_met(const Conjunction& schemas, const Json& value) {
  const Result<SharedShapes> shapes = shapes_of(schemas);
  if (!shapes) return std::unexpected(shapes.error());
  for (const Shape& shape : **shapes) {
    const Result<bool> met = is_met(shape, value);
    if (!met || *met) return met;
  }
  return false;
}

Result<bool> SchemaExpander::is_met(const Shape& shape, const Json& value) {
  if (const Result<void> spent = budget_.spend(4); !spent) return std::unexpected(spent.error());
  const JsonType type = type_of(value);
  if (!shape.types.has(type)) return false;
  if (shape.values) {
    const std::string key = enum_value(value).key;
    const std::size_t n_compared = shape.values->size() + key.size() / 16;
    if (const Result<void> spent = budget_.spend(n_compared); !spent) {
      return std::unexpected(spent.error());
    }
    if (std::ranges::find(*shape.values, key, &EnumValue::key) == shape.values->end()) return false;
  }
  switch (type) {
    case JsonType::kNull:
    case JsonType::kBoolean: return true;
    case JsonType::kNumber: return shape.number.contains(decimal_of(value));
    case JsonType::kString:
      return slipstream::is_met(shape.string, value.get_ref<const std::string&>());
    case JsonType::kArray: return array_is_met(shape.array, value);
    case JsonType::kObject: return object_is_met(shape.object, value);
  }
  std::unreachable();
}

Result<bool> SchemaExpander::array_is_met(const ArrayDemands& array, const Json& value) {
  if (!array.count.contains(value.size())) return false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const Result<bool> met = is_met(array.of(i), value[i]);
    if (!met || !*met) return met;
  }
  return true;
}

Result<bool> SchemaExpander::object_is_met(const ObjectDemands& object, const Json& value) {
  if (!object.count.contains(value.size())) return false;
  const auto is_there = [&value](const std::string& name) { return value.contains(name); };
  if (!std::ranges::all_of(object.required, is_there)) return false;
  for (const auto& [name, member] : value.items()) {
    const Result<bool> met = is_met(object.of(name), member);
    if (!met || !*met) return met;
    const Result<bool> name_met = is_met(object.names, Json(name));
    if (!name_met || !*name_met) return name_met;
  }
  return true;
}

}  // namespace slipstream
