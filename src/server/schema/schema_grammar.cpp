#include "server/schema/schema_grammar.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/format.h"
#include "server/schema/object_rules.h"
#include "server/schema/schema_error.h"
#include "server/schema/schema_limits.h"
#include "server/schema/string_language.h"

namespace slipstream {
namespace {

// The cost of looking up n parts: what the n_schemas say about each part is merged schema by
// schema, into ever longer lists.
std::size_t n_lookup_steps(std::size_t n, std::size_t n_schemas) {
  return 8 * n + n * n_schemas * (1 + n_schemas / 16);
}

}  // namespace

Result<void> SchemaGrammar::finish() {
  while (!todo_.empty()) {
    const Conjunction schemas = std::move(todo_.back());
    todo_.pop_back();
    const std::string& pointer = document_.pointer(schemas.empty() ? document_.root() : schemas[0]);
    if (const Result<void> spent = budget_.spend(1); !spent) return refuse(pointer, spent.error());
    if (const Result<void> done = fill(rules_[schemas], schemas); !done) {
      return refuse(pointer, done.error());
    }
    if (writer_.is_full()) return refuse(pointer, GbnfWriter::too_large());
  }
  return {};
}

Result<RuleId> SchemaGrammar::add_bare_text(const Conjunction& schemas, const Automaton& among) {
  const Result<Automaton> texts = strings_of(schemas);
  if (!texts) return std::unexpected(texts.error());
  const Result<Automaton> both = combine(*texts, among, Combination::kBoth, budget_);
  if (!both) return std::unexpected(both.error());
  const RuleId rule = writer_.add_rule("text");
  if (!both->empty()) writer_.add(rule, {text_.bare(*both)});
  return rule;
}

RuleId SchemaGrammar::value_rule(const Conjunction& schemas) {
  const auto [known, is_new] = rules_.try_emplace(schemas, 0);
  if (is_new) {
    known->second = writer_.add_rule("value");
    todo_.push_back(schemas);
  }
  return known->second;
}

Result<void> SchemaGrammar::fill(RuleId rule, const Conjunction& schemas) {
  const Result<SchemaExpander::SharedShapes> shapes = expander_.shapes_of(schemas);
  if (!shapes) return std::unexpected(shapes.error());
  for (const Shape& shape : **shapes) {
    if (writer_.is_full()) return {};
    Result<void> done;
    if (shape.values) {
      done = fill_values(rule, shape, *shape.values);
      if (!done) return done;
      continue;
    }
    if (shape.types.has(JsonType::kNull)) writer_.add(rule, {gbnf_literal("null")});
    if (shape.types.has(JsonType::kBoolean)) {
      writer_.add(rule, {gbnf_literal("true")});
      writer_.add(rule, {gbnf_literal("false")});
    }
    if (shape.types.has(JsonType::kNumber)) done = fill_number(rule, shape.number);
    if (done && shape.types.has(JsonType::kString)) done = fill_string(rule, shape.string);
    if (done && shape.types.has(JsonType::kArray)) done = fill_array(rule, shape.array);
    if (done && shape.types.has(JsonType::kObject)) done = fill_object(rule, shape.object);
    if (!done) return done;
  }
  return {};
}

Result<void> SchemaGrammar::fill_values(RuleId rule, const Shape& shape,
                                        const std::vector<EnumValue>& values) {
  for (const EnumValue& value : values) {
    const Result<bool> met = expander_.is_met(shape, *value.json);
    if (!met) return std::unexpected(met.error());
    if (*met) writer_.add(rule, text_.literal(*value.json));
  }
  return {};
}

Result<void> SchemaGrammar::fill_number(RuleId rule, const NumberRange& range) {
  if (range.empty()) return {};
  if (range.is_plain()) {
    writer_.add(rule, {range.is_integer ? text_.integer() : text_.number()});
    return {};
  }
  const Result<Automaton> texts = automaton_of(range, budget_);
  if (!texts) return std::unexpected(texts.error());
  if (!texts->empty()) writer_.add(rule, {text_.number(*texts)});
  return {};
}

Result<void> SchemaGrammar::fill_string(RuleId rule, const StringDemands& demands) {
  if (demands.length.empty()) return {};
  if (demands.languages.empty()) {
    writer_.add(rule, {text_.string(demands.length)});
    return {};
  }
  const Result<Automaton> texts = automaton_of(demands, budget_);
  if (!texts) return std::unexpected(texts.error());
  if (!texts->empty()) writer_.add(rule, {text_.string(*texts)});
  return {};
}

// array ::= "[" items-0
// items-0 ::= "]" | item-0 items-1
// items-1 ::= "]" | "," item-1 items-2
// items-2 ::= ("," item){a,b} "]"
// A "]" is an alternative only where that few items are allowed.
Result<void> SchemaGrammar::fill_array(RuleId rule, const ArrayDemands& demands) {
  const auto& [n_min, n_max] = demands.count;
  if (demands.count.empty()) return {};
  // The first item has no comma before it, so it cannot be one of the repeated items.
  const std::size_t n_prefix = std::max<std::size_t>(demands.n_prefix(), 1);
  const std::size_t n_steps = n_lookup_steps(n_prefix, demands.items.size());
  if (const Result<void> spent = budget_.spend(n_steps); !spent) return spent;
  RuleId items = writer_.add_rule("items");
  writer_.add(rule, {gbnf_literal("["), gbnf_rule(items)});
  for (std::size_t i = 0; i < n_prefix; ++i) {
    if (i >= n_min) writer_.add(items, {gbnf_literal("]")});
    if (n_max == i) return {};
    const RuleId next = writer_.add_rule("items");
    GbnfSequence item;
    if (i > 0) item.push_back(text_.comma());
    item.push_back(gbnf_rule(value_rule(demands.of(i))));
    item.push_back(gbnf_rule(next));
    writer_.add(items, std::move(item));
    items = next;
  }
  const RuleId item = writer_.add_rule("item");
  writer_.add(item, {text_.comma(), gbnf_rule(value_rule(demands.of(n_prefix)))});
  const std::size_t n_more_min = n_min > n_prefix ? n_min - n_prefix : 0;
  const std::optional<std::size_t> n_more_max =
      n_max ? std::optional(*n_max - n_prefix) : std::nullopt;
  writer_.add(items, {repeated(gbnf_rule(item), n_more_min, n_more_max), gbnf_literal("]")});
  return {};
}

Result<void> SchemaGrammar::spend_on_names(const ObjectDemands& demands) {
  std::size_t n_names = demands.required.size();
  for (const auto& schemas : demands.properties) n_names += schemas->order.size();
  return budget_.spend(n_lookup_steps(n_names, demands.properties.size()));
}

Result<void> SchemaGrammar::fill_object(RuleId rule, const ObjectDemands& demands) {
  if (demands.count.empty()) return {};
  const Result<std::optional<Automaton>> names = allowed_names(demands.names);
  if (!names) return std::unexpected(names.error());
  ObjectRules object;
  object.marks = json_marks(text_);
  object.count = demands.count;
  std::set<std::string> seen;
  std::vector<std::string> named;
  const auto add_name = [&](const std::string& name) {
    if (!seen.insert(name).second) return;
    named.push_back(name);
    const bool is_required = demands.required.contains(name);
    const bool is_allowed = !*names || (*names)->contains(name);
    if (!is_allowed && is_required) object.is_impossible = true;
    if (!is_allowed) return;
    object.properties.push_back(
        {.member = {text_.key(name), text_.colon(), gbnf_rule(value_rule(demands.of(name)))},
         .is_required = is_required});
  };
  if (const Result<void> spent = spend_on_names(demands); !spent) return spent;
  for (const auto& schemas : demands.properties) {
    for (const std::string& name : schemas->order) add_name(name);
  }
  for (const std::string& name : demands.required) add_name(name);
  if (object.is_impossible) return {};
  Result<std::vector<KeyClass>> classes = key_classes(demands, named, *names);
  if (!classes) return std::unexpected(classes.error());
  for (KeyClass& one : *classes) {
    object.others.push_back(
        {.member = {std::move(one.key), text_.colon(), gbnf_rule(value_rule(one.schema))},
         .is_required = false});
  }
  return add_object(rule, object, writer_);
}

Result<std::optional<Automaton>> SchemaGrammar::allowed_names(const Conjunction& schemas) {
  if (schemas.empty()) return std::nullopt;
  Result<Automaton> names = strings_of(schemas);
  if (!names) return std::unexpected(names.error());
  return std::optional(std::move(*names));
}

Result<Automaton> SchemaGrammar::strings_of(const Conjunction& schemas) {
  const Result<SchemaExpander::SharedShapes> shapes = expander_.shapes_of(schemas);
  if (!shapes) return std::unexpected(shapes.error());
  Result<Automaton> all = Automaton({{.accepts = false, .edges = {}}});
  for (const Shape& shape : **shapes) {
    if (!shape.types.has(JsonType::kString)) continue;
    std::vector<std::string> values;
    for (const EnumValue& value : shape.values.value_or(std::vector<EnumValue>{})) {
      const bool fits = value.json->is_string() &&
                        is_met(shape.string, value.json->get_ref<const std::string&>());
      if (fits) values.push_back(value.json->get<std::string>());
    }
    const Result<Automaton> some =
        shape.values ? Automaton::of_texts(values) : automaton_of(shape.string, budget_);
    if (!some) return std::unexpected(some.error());
    all = combine(*all, *some, Combination::kEither, budget_);
    if (!all) return all;
  }
  return all;
}

// One class for each set of patterns that match. With two patterns: keys that match both,
// either or none.
Result<std::vector<SchemaGrammar::KeyClass>> SchemaGrammar::key_classes(
    const ObjectDemands& demands, const std::vector<std::string>& named,
    const std::optional<Automaton>& names) {
  std::vector<const PropertySchemas::Pattern*> patterns;
  for (const auto& schemas : demands.properties) {
    for (const PropertySchemas::Pattern& pattern : schemas->patterns) patterns.push_back(&pattern);
  }
  if (patterns.size() > kSchemaLimits.schema_key_patterns_max) {
    return fail(Code::kUnsupported, format_text("more than {} patternProperties at once",
                                                kSchemaLimits.schema_key_patterns_max));
  }
  std::vector<KeyClass> classes;
  for (std::size_t mask = 0; mask < std::size_t{1} << patterns.size(); ++mask) {
    Conjunction schema;
    std::size_t i = 0;
    for (const auto& schemas : demands.properties) {
      Conjunction matched;
      bool is_matched = false;
      for (const PropertySchemas::Pattern& pattern : schemas->patterns) {
        const bool matches = ((mask >> i++) & 1U) != 0;
        if (matches) matched = both(matched, pattern.schema);
        is_matched = is_matched || matches;
      }
      schema = both(schema, is_matched ? matched : schemas->rest);
    }
    // Most schemas have additionalProperties: false. Then no shape is left and the keys need
    // not be computed.
    const Result<SchemaExpander::SharedShapes> shapes = expander_.shapes_of(schema);
    if (!shapes) return std::unexpected(shapes.error());
    if ((*shapes)->empty()) continue;
    if (named.empty() && patterns.empty() && !names) {
      classes.push_back({text_.string(CountRange{}), schema});
      continue;
    }
    const Result<Automaton> taken = Automaton::of_texts(named);
    if (!taken) return std::unexpected(taken.error());
    Result<Automaton> keys =
        combine(names ? *names : Automaton::any_text(), *taken, Combination::kFirstOnly, budget_);
    for (std::size_t p = 0; keys && p < patterns.size(); ++p) {
      const bool matches = ((mask >> p) & 1U) != 0;
      keys = combine(*keys, *patterns[p]->names,
                     matches ? Combination::kBoth : Combination::kFirstOnly, budget_);
    }
    if (!keys) return std::unexpected(keys.error());
    if (!keys->empty()) classes.push_back({text_.string(*keys), schema});
  }
  return classes;
}

}  // namespace slipstream
