// SchemaExpander: follows $ref, allOf, anyOf and oneOf, and turns a schema into a list of shapes. A
// value must match one of them. allOf merges shapes. anyOf lists them. oneOf lists them if no value
// can match two.
//
// Only one level of values is expanded: the schemas of properties and items stay references, so
// that a schema may contain itself. A schema that refers to itself without a value in between (a
// $ref to itself) is refused.
//
// Threads: thread-compatible.
// Errors:  as KeywordReader, and kUnsupported past SchemaLimits::schema_shapes_max.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/result.h"
#include "server/schema/keyword_reader.h"
#include "server/schema/shape.h"
#include "server/schema/work_budget.h"

namespace slipstream {

class SchemaExpander {
 public:
  SchemaExpander(SchemaDocument& document, WorkBudget& budget)
      : document_(document), budget_(budget), reader_(document, budget) {}

  using SharedShapes = std::shared_ptr<const Shapes>;  // shared by this cache and its users
  [[nodiscard]] Result<SharedShapes> shapes_of(const Conjunction& schemas);

  // Whether the value is valid.
  [[nodiscard]] Result<bool> is_met(const Conjunction& schemas, const Json& value);
  [[nodiscard]] Result<bool> is_met(const Shape& shape, const Json& value);

  [[nodiscard]] WorkBudget& budget() { return budget_; }

 private:
  [[nodiscard]] Result<SharedShapes> shapes_of(SchemaId id);
  [[nodiscard]] Result<Shapes> expand(SchemaId id);
  [[nodiscard]] Result<void> follow_reference(SchemaId id, Shapes& shapes);
  [[nodiscard]] Result<void> merge_all(SchemaId id, Shapes& shapes);
  [[nodiscard]] Result<void> choose_any(SchemaId id, Shapes& shapes);
  [[nodiscard]] Result<void> choose_one(SchemaId id, Shapes& shapes);
  // The schemas in the keyword's list; empty if the keyword is absent.
  [[nodiscard]] Result<std::vector<SchemaId>> listed(SchemaId id, const char* keyword);
  // The shapes that meet both. An error names the schema.
  [[nodiscard]] Result<Shapes> merge(const Shapes& shapes, SchemaId id);
  [[nodiscard]] Result<Shapes> product(const Shapes& a, const Shapes& b);
  [[nodiscard]] Result<bool> array_is_met(const ArrayDemands& array, const Json& value);
  [[nodiscard]] Result<bool> object_is_met(const ObjectDemands& object, const Json& value);

  SchemaDocument& document_;
  WorkBudget& budget_;
  KeywordReader reader_;
  std::map<SchemaId, SharedShapes> of_schema_;
  std::map<Conjunction, SharedShapes> of_schemas_;
  std::vector<SchemaId> open_;  // schemas being expanded, each inside the one before
};

}  // namespace slipstream
