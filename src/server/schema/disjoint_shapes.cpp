#include "server/schema/disjoint_shapes.h"

#include <algorithm>

#include "server/schema/schema_expander.h"
#include "server/schema/string_language.h"

namespace slipstream {
namespace {

// Branches usually differ near the top, and a schema may contain itself.
constexpr std::size_t kDepthMax = 4;

}  // namespace

Result<bool> DisjointShapes::are_disjoint(const Shapes& a, const Shapes& b) {
  for (const Shape& one : a) {
    for (const Shape& other : b) {
      if (const Result<void> spent = expander_.budget().spend(16); !spent) {
        return std::unexpected(spent.error());
      }
      const Result<bool> apart = shapes(one, other);
      if (!apart || !*apart) return apart;
    }
  }
  return true;
}

Result<bool> DisjointShapes::shapes(const Shape& a, const Shape& b) {
  if (a.values) return values(*a.values, a, b);
  if (b.values) return values(*b.values, b, a);
  const TypeSet common = a.types & b.types;
  for (const JsonType type : kJsonTypes) {
    if (!common.has(type)) continue;
    const Result<bool> apart = of_type(type, a, b);
    if (!apart || !*apart) return apart;
  }
  return true;
}

Result<bool> DisjointShapes::values(const std::vector<EnumValue>& values, const Shape& a,
                                    const Shape& b) {
  for (const EnumValue& value : values) {
    const Result<bool> in_a = expander_.is_met(a, *value.json);
    if (!in_a) return in_a;
    if (!*in_a) continue;
    const Result<bool> in_b = expander_.is_met(b, *value.json);
    if (!in_b) return in_b;
    if (*in_b) return false;
  }
  return true;
}

Result<bool> DisjointShapes::of_type(JsonType type, const Shape& a, const Shape& b) {
  switch (type) {
    case JsonType::kNull:
    case JsonType::kBoolean: return false;
    case JsonType::kNumber: {
      NumberRange range = a.number;
      range.intersect(b.number);
      return range.empty();
    }
    case JsonType::kString: return strings(a.string, b.string);
    case JsonType::kArray: return arrays(a.array, b.array);
    case JsonType::kObject: return objects(a.object, b.object);
  }
  return false;
}

Result<bool> DisjointShapes::strings(const StringDemands& a, const StringDemands& b) {
  StringDemands common = a;
  common.length.intersect(b.length);
  if (common.length.empty()) return true;
  common.languages.insert(common.languages.end(), b.languages.begin(), b.languages.end());
  if (common.languages.empty()) return false;
  const Result<Automaton> texts = automaton_of(common, expander_.budget());
  // If the automaton would be too large, the answer is "not known".
  return texts && texts->empty();
}

Result<bool> DisjointShapes::arrays(const ArrayDemands& a, const ArrayDemands& b) {
  CountRange count = a.count;
  count.intersect(b.count);
  if (count.empty()) return true;
  const std::size_t n_prefix = std::max(a.n_prefix(), b.n_prefix());
  for (std::size_t i = 0; i < std::min(count.n_min, n_prefix + 1); ++i) {
    const Result<bool> apart = schemas(a.of(i), b.of(i));
    if (!apart || *apart) return apart;
  }
  return false;
}

Result<bool> DisjointShapes::objects(const ObjectDemands& a, const ObjectDemands& b) {
  CountRange count = a.count;
  count.intersect(b.count);
  if (count.empty()) return true;
  for (const ObjectDemands* side : {&a, &b}) {
    for (const std::string& name : side->required) {
      const Result<bool> apart = schemas(a.of(name), b.of(name));
      if (!apart || *apart) return apart;
    }
  }
  return false;
}

Result<bool> DisjointShapes::schemas(const Conjunction& a, const Conjunction& b) {
  if (depth_ == kDepthMax) return false;
  const Result<SchemaExpander::SharedShapes> one = expander_.shapes_of(a);
  const Result<SchemaExpander::SharedShapes> other = expander_.shapes_of(b);
  // A part that contains the current schema cannot be expanded yet. Any other error in it is
  // reported when the part itself is converted.
  if (!one || !other) return false;
  ++depth_;
  const Result<bool> apart = are_disjoint(**one, **other);
  --depth_;
  return apart;
}

}  // namespace slipstream
