// DisjointShapes: whether two shapes are known to have no value in common, which is what oneOf
// needs of its branches. "Not known" is the answer wherever it is not easily seen: by types,
// values, bounds, texts, or a required property or item that is itself disjoint.
//
// Threads: thread-compatible. Errors: kUnsupported if it takes too long.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "server/schema/shape.h"

namespace slipstream {

class SchemaExpander;

class DisjointShapes {
 public:
  explicit DisjointShapes(SchemaExpander& expander) : expander_(expander) {}

  // Whether each shape of one list is disjoint from each of the other.
  [[nodiscard]] Result<bool> are_disjoint(const Shapes& a, const Shapes& b);

 private:
  [[nodiscard]] Result<bool> shapes(const Shape& a, const Shape& b);
  // `values` are those of a.
  [[nodiscard]] Result<bool> values(const std::vector<EnumValue>& values, const Shape& a,
                                    const Shape& b);
  [[nodiscard]] Result<bool> of_type(JsonType type, const Shape& a, const Shape& b);
  [[nodiscard]] Result<bool> strings(const StringDemands& a, const StringDemands& b);
  [[nodiscard]] Result<bool> arrays(const ArrayDemands& a, const ArrayDemands& b);
  [[nodiscard]] Result<bool> objects(const ObjectDemands& a, const ObjectDemands& b);
  [[nodiscard]] Result<bool> schemas(const Conjunction& a, const Conjunction& b);

  SchemaExpander& expander_;
  std::size_t depth_ = 0;  // of properties and items looked into
};

}  // namespace slipstream
