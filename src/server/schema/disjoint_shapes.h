// DisjointShapes: whether two shapes are known to have no value in common. oneOf needs this of its
// branches. The test looks at types, values, bounds, texts, and required properties or items that
// are themselves disjoint. Where these do not decide, the answer is "not known" (false).
//
// Threads: thread-compatible.
// Errors:  kUnsupported if it takes too long.
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
  // `values` are the values of a.
  [[nodiscard]] Result<bool> values(const std::vector<EnumValue>& values, const Shape& a,
                                    const Shape& b);
  [[nodiscard]] Result<bool> of_type(JsonType type, const Shape& a, const Shape& b);
  [[nodiscard]] Result<bool> strings(const StringDemands& a, const StringDemands& b);
  [[nodiscard]] Result<bool> arrays(const ArrayDemands& a, const ArrayDemands& b);
  [[nodiscard]] Result<bool> objects(const ObjectDemands& a, const ObjectDemands& b);
  [[nodiscard]] Result<bool> schemas(const Conjunction& a, const Conjunction& b);

  SchemaExpander& expander_;
  std::size_t depth_ = 0;  // how many levels of properties and items have been entered
};

}  // namespace slipstream
