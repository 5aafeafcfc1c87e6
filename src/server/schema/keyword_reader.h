// KeywordReader: the shape that a schema's own keywords describe. $ref, allOf, anyOf and oneOf lead
// to other schemas and are not read here (schema_expander.h).
//
// Every keyword is obeyed, known to demand nothing, or refused. None is ignored silently.
//
// Threads: thread-compatible.
// Errors:  kInvalidArgument if a keyword makes no sense, kUnsupported if it cannot be expressed as
//          a grammar. Both name the keyword's place.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "server/schema/shape.h"
#include "server/schema/work_budget.h"

namespace slipstream {

class KeywordReader {
 public:
  KeywordReader(SchemaDocument& document, WorkBudget& budget)
      : document_(document), budget_(budget) {}

  // REQUIRES: the schema is an object.
  [[nodiscard]] Result<Shape> read(SchemaId id);

 private:
  struct Keyword {
    SchemaId schema;
    const std::string& name;
    const Json& value;
    std::string pointer;
  };
  // What all keywords of one schema demand together.
  struct Parts {
    Shape shape;
    ItemSchemas items;
    PropertySchemas properties;
    bool has_items = false;
    bool has_properties = false;
  };

  [[nodiscard]] Result<void> read_keyword(const Keyword& keyword, Parts& parts);
  [[nodiscard]] Result<void> read_type(const Keyword& keyword, Shape& shape);
  [[nodiscard]] Result<void> read_values(const Keyword& keyword, Shape& shape);
  [[nodiscard]] Result<void> read_bound(const Keyword& keyword, NumberRange& range);
  [[nodiscard]] Result<void> read_multiple(const Keyword& keyword, NumberRange& range);
  [[nodiscard]] Result<void> read_count(const Keyword& keyword, CountRange& range);
  [[nodiscard]] Result<void> read_language(const Keyword& keyword, StringDemands& string);
  [[nodiscard]] Result<void> read_prefix_items(const Keyword& keyword, ItemSchemas& items);
  [[nodiscard]] Result<void> read_properties(const Keyword& keyword, PropertySchemas& properties);
  [[nodiscard]] Result<void> read_patterns(const Keyword& keyword, PropertySchemas& properties);
  [[nodiscard]] Result<void> read_required(const Keyword& keyword, ObjectDemands& object);
  [[nodiscard]] Result<Conjunction> read_schema(const Json& value, std::string pointer);
  [[nodiscard]] Result<std::shared_ptr<const Automaton>> language(std::string_view pattern,
                                                                  std::string_view pointer);

  SchemaDocument& document_;
  WorkBudget& budget_;
  // The same pattern often occurs many times. Its automaton is shared by this map and the shapes.
  std::unordered_map<std::string, std::shared_ptr<const Automaton>> languages_;
};

}  // namespace slipstream
