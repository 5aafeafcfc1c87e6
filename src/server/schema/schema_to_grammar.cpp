#include "server/schema/schema_to_grammar.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "server/schema/gbnf_writer.h"
#include "server/schema/schema_document.h"
#include "server/schema/schema_error.h"
#include "server/schema/schema_grammar.h"
#include "server/schema/schema_limits.h"
#include "server/schema/work_budget.h"

namespace slipstream {

Result<std::string> grammar_of_schema(const nlohmann::ordered_json& schema) {
  Result<SchemaDocument> document = SchemaDocument::create(schema);
  if (!document) return std::unexpected(document.error());
  WorkBudget budget(kSchemaLimits.schema_steps_max);
  GbnfWriter writer;
  SchemaGrammar values(*document, budget, writer);
  const RuleId root = values.add_root();
  if (const Result<void> done = values.finish(); !done) return std::unexpected(done.error());
  Result<std::string> text = writer.text(root);
  if (!text) return refuse("", text.error());
  return text;
}

std::string grammar_of_any_object() {
  Result<std::string> grammar = grammar_of_schema({{"type", "object"}});
  SLIP_CHECK(grammar.has_value(), "a small schema without anything to refuse");
  return std::move(*grammar);
}

}  // namespace slipstream
