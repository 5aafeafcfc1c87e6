// SchemaGrammar: adds rules for the values of schemas to a grammar, which may have other
// rules. Each conjunction of schemas that some value must meet becomes one rule. Rules are
// filled from a to-do list instead of recursively: a schema may contain itself, and a chain of
// schemas may be long.
//
// Threads: thread-compatible.
// Errors:  as SchemaExpander and GbnfWriter, with the schema's place.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/schema/gbnf_writer.h"
#include "server/schema/json_text.h"
#include "server/schema/schema_expander.h"

namespace slipstream {

class SchemaGrammar {
 public:
  SchemaGrammar(SchemaDocument& document, WorkBudget& budget, GbnfWriter& writer,
                JsonText::Tags tags = JsonText::Tags::kNone)
      : document_(document),
        budget_(budget),
        expander_(document, budget),
        writer_(writer),
        text_(writer_, tags) {}

  // Adds a rule for the document's values as JSON. finish() fills this rule and those added below.
  [[nodiscard]] RuleId add_root() { return value_rule({document_.root()}); }
  // Adds a rule for the values that meet some of the document's schemas.
  [[nodiscard]] RuleId add_value(const Conjunction& schemas) { return value_rule(schemas); }
  // Adds a rule for those of these values that are strings in `among`, without quotes and escapes.
  [[nodiscard]] Result<RuleId> add_bare_text(const Conjunction& schemas, const Automaton& among);
  [[nodiscard]] Result<void> finish();
  // Charges the budget for looking up all names of an object. Call it before demands.of(name).
  [[nodiscard]] Result<void> spend_on_names(const ObjectDemands& demands);

  [[nodiscard]] SchemaExpander& expander() { return expander_; }

 private:
  // Keys that no schema names, and whose values must meet the same schemas.
  struct KeyClass {
    GbnfItem key;
    Conjunction schema;
  };

  [[nodiscard]] RuleId value_rule(const Conjunction& schemas);
  [[nodiscard]] Result<void> fill(RuleId rule, const Conjunction& schemas);
  // `values` are the values of the shape.
  [[nodiscard]] Result<void> fill_values(RuleId rule, const Shape& shape,
                                         const std::vector<EnumValue>& values);
  [[nodiscard]] Result<void> fill_number(RuleId rule, const NumberRange& range);
  [[nodiscard]] Result<void> fill_string(RuleId rule, const StringDemands& demands);
  [[nodiscard]] Result<void> fill_array(RuleId rule, const ArrayDemands& demands);
  [[nodiscard]] Result<void> fill_object(RuleId rule, const ObjectDemands& demands);
  [[nodiscard]] Result<std::vector<KeyClass>> key_classes(const ObjectDemands& demands,
                                                          const std::vector<std::string>& named,
                                                          const std::optional<Automaton>& names);
  // The names that propertyNames allows; nullopt if it allows all.
  [[nodiscard]] Result<std::optional<Automaton>> allowed_names(const Conjunction& schemas);
  // The strings that meet the schemas.
  [[nodiscard]] Result<Automaton> strings_of(const Conjunction& schemas);

  SchemaDocument& document_;
  WorkBudget& budget_;
  SchemaExpander expander_;
  GbnfWriter& writer_;
  JsonText text_;
  std::map<Conjunction, RuleId> rules_;
  std::vector<Conjunction> todo_;
};

}  // namespace slipstream
