// KeywordReader: the shape of one schema by its own keywords, without $ref, allOf, anyOf and oneOf,
// which lead to other schemas (schema_expander.h).
//
// A keyword is obeyed, or known to demand nothing, or refused: none is passed over in silence.
//
// Threads: thread-compatible.
// Errors:  kInvalidArgument where a keyword has no sense, kUnsupported where it cannot be a
// grammar; both name the keyword's place.
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

  // Of a schema that is an object.
  [[nodiscard]] Result<Shape> read(SchemaId id);

 private:
  struct Keyword {
    SchemaId schema;
    const std::string& name;
    const Json& value;
    std::string pointer;
  };
  // What keywords of one schema say together.
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
  // The same pattern is often said many times; here and in the shapes.
  std::unordered_map<std::string, std::shared_ptr<const Automaton>> languages_;
};

}  // namespace slipstream
