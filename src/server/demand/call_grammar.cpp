#include "server/demand/call_grammar.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "server/ascii.h"
#include "server/output/tool_set.h"
#include "server/schema/json_text.h"
#include "server/schema/object_rules.h"
#include "server/schema/schema_document.h"
#include "server/schema/schema_error.h"
#include "server/schema/schema_grammar.h"

namespace slipstream {
namespace {

// A limit on calls, so that a model that would never stop calling comes to an end.
constexpr std::size_t kCallsMax = 64;
constexpr std::size_t kIdLength = 9;  // the form that Mistral's templates require
constexpr std::size_t kNumberDigitsMax = 3;
constexpr char kPlaces[] = {kAnyId, kAnyNumber, '\0'};
constexpr std::string_view kCdata = "<![CDATA[";  // OutputParser would treat it as markup

// A key that needs no quotes in any syntax.
bool is_plain_key(std::string_view key) {
  return !key.empty() && !is_digit(key[0]) && std::ranges::all_of(key, is_name_byte);
}

GbnfItem any_space() {
  return repeated(gbnf_class(CodePointSet({{' ', ' '}, {'\n', '\n'}})), 0, 2);
}

GbnfItem any_id() {
  const CodePointSet letters({{'0', '9'}, {'A', 'Z'}, {'a', 'z'}});
  return repeated(gbnf_class(letters), kIdLength, kIdLength);
}

GbnfItem any_number() {
  return repeated(gbnf_class(CodePointSet({{'0', '9'}})), 1, kNumberDigitsMax);
}

// The schema of the tool's parameters, with "type": "object" added if it has no type.
Result<Json> parameters_of(const Json& function) {
  const auto found = function.find("parameters");
  if (found == function.end() || found->is_null()) return Json{{"type", "object"}};
  if (!found->is_object()) return fail(Code::kInvalidArgument, "must be a JSON schema");
  Json schema = *found;
  if (!schema.contains("type")) schema["type"] = "object";
  if (schema["type"] != "object") {
    return fail(Code::kInvalidArgument, "must be a schema of objects: arguments have names");
  }
  return schema;
}

void append(GbnfSequence& sequence, GbnfSequence more) {
  std::ranges::move(more, std::back_inserter(sequence));
}

// The marks of arguments that are written one by one.
struct MemberMarks {
  ObjectMarks object;
  GbnfSequence json_open;
  GbnfSequence text_open;
  GbnfSequence text_close;
  std::optional<Automaton> texts;  // texts written as they are; if not set, texts are JSON
};

class MemberArguments {
 public:
  MemberArguments(const Json& function, const MemberMarks& marks, SchemaGrammar& values)
      : name_(function["name"]),
        types_(Json::array({{{"function", function}}})),
        marks_(marks),
        values_(values) {}

  Result<void> add_to(RuleId rule, SchemaId root, GbnfWriter& writer) {
    const auto shapes = values_.expander().shapes_of(Conjunction{root});
    if (!shapes) return std::unexpected(shapes.error());
    for (const Shape& shape : **shapes) {
      if (!shape.types.has(JsonType::kObject)) continue;
      if (shape.values || !shape.object.names.empty()) {
        return fail(Code::kUnsupported,
                    "enum, const and propertyNames cannot be demanded of all arguments at once");
      }
      Result<ObjectRules> rules = rules_of(shape.object);
      if (!rules) return std::unexpected(rules.error());
      if (const auto done = add_object(rule, *rules, writer); !done) return done;
    }
    return {};
  }

 private:
  Result<ObjectRules> rules_of(const ObjectDemands& demands) {
    if (const auto spent = values_.spend_on_names(demands); !spent) {
      return std::unexpected(spent.error());
    }
    ObjectRules rules;
    rules.marks = marks_.object;
    rules.count = demands.count;
    std::vector<std::string> names;
    for (const auto& schemas : demands.properties) {
      names.insert(names.end(), schemas->order.begin(), schemas->order.end());
    }
    names.insert(names.end(), demands.required.begin(), demands.required.end());
    std::set<std::string> seen;
    for (const std::string& name : names) {
      if (!seen.insert(name).second) continue;
      Result<GbnfSequence> member = member_of(name, demands.of(name));
      if (!member) return std::unexpected(member.error());
      rules.properties.push_back(
          {.member = std::move(*member), .is_required = demands.required.contains(name)});
    }
    return rules;
  }

  Result<GbnfSequence> member_of(const std::string& key, const Conjunction& schemas) {
    if (!is_plain_key(key)) {
      return fail(Code::kUnsupported,
                  format_text("this model cannot write a parameter named {}", Json(key).dump()));
    }
    GbnfSequence member = {gbnf_literal(key)};
    if (!marks_.texts || types_.type_of(name_, key) != ParameterType::kText) {
      append(member, marks_.json_open);
      member.push_back(gbnf_rule(values_.add_value(schemas)));
      return member;
    }
    const Result<RuleId> text = values_.add_bare_text(schemas, *marks_.texts);
    if (!text) return std::unexpected(text.error());
    append(member, marks_.text_open);
    member.push_back(gbnf_rule(*text));
    append(member, marks_.text_close);
    return member;
  }

  const std::string name_;
  const ToolSet types_;
  const MemberMarks& marks_;
  SchemaGrammar& values_;
};

}  // namespace

bool is_callable_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char byte) {
    return is_name_byte(byte) || byte == '-' || byte == '.';
  });
}

CallGrammar::CallGrammar(Options options)
    : options_(std::move(options)), call_(writer_.add_rule("call")) {}

Result<void> CallGrammar::add(const Json& function) {
  const std::string name = function["name"];
  SLIP_CHECK(is_callable_name(name), name);
  const Result<RuleId> arguments = arguments_rule(function);
  if (!arguments) return std::unexpected(arguments.error());
  if (!writer_.can_match(*arguments)) return fail(Code::kInvalidArgument, "no value meets it");
  GbnfSequence call = {gbnf_literal(name)};
  append(call, sequence_of(options_.markup.after_name));
  call.push_back(gbnf_rule(*arguments));
  writer_.add(call_, std::move(call));
  has_calls_ = true;
  return {};
}

Result<void> CallGrammar::allow_value(const Json& schema) {
  Result<SchemaDocument> document = SchemaDocument::create(schema);
  if (!document) return std::unexpected(document.error());
  SchemaGrammar values(*document, budget_, writer_);
  const RuleId value = values.add_root();
  if (const Result<void> done = values.finish(); !done) return done;
  if (!writer_.can_match(value)) return fail(Code::kInvalidArgument, "no value meets it");
  value_ = value;
  return {};
}

Result<RuleId> CallGrammar::arguments_rule(const Json& function) {
  const Result<Json> schema = parameters_of(function);
  if (!schema) return std::unexpected(schema.error());
  Result<SchemaDocument> document = SchemaDocument::create(*schema);
  if (!document) return std::unexpected(document.error());
  const bool has_tags = options_.markup.members && !options_.markup.members->text_end.empty();
  SchemaGrammar values(*document, budget_, writer_,
                       has_tags ? JsonText::Tags::kAround : JsonText::Tags::kNone);
  RuleId rule = 0;
  if (options_.markup.members) {
    const MemberMarkup& markup = *options_.markup.members;
    MemberMarks marks{.object = {.open = {},
                                 .first = sequence_of(markup.first),
                                 .next = sequence_of(markup.next),
                                 .close = sequence_of(markup.close),
                                 .close_empty = sequence_of(markup.close_empty)},
                      .json_open = sequence_of(markup.json_open),
                      .text_open = sequence_of(markup.text_open),
                      .text_close = sequence_of(markup.text_close),
                      .texts = std::nullopt};
    if (!markup.text_end.empty()) {
      Result<Automaton> texts = Automaton::without({markup.text_end, std::string(kCdata)});
      if (!texts) return std::unexpected(texts.error());
      marks.texts = std::move(*texts);
    }
    rule = writer_.add_rule("arguments");
    const auto done =
        MemberArguments(function, marks, values).add_to(rule, document->root(), writer_);
    if (!done) return refuse("", done.error());
  } else {
    rule = values.add_root();
  }
  if (const Result<void> done = values.finish(); !done) return std::unexpected(done.error());
  return rule;
}

GbnfSequence CallGrammar::calls() {
  const CallMarkup& markup = options_.markup;
  GbnfSequence answer = sequence_of(markup.before_name);
  answer.push_back(gbnf_rule(call_));
  if (markup.between && options_.allows_several) {
    const RuleId next = writer_.add_rule("next");
    GbnfSequence sequence = sequence_of(*markup.between);
    sequence.push_back(gbnf_rule(call_));
    writer_.add(next, std::move(sequence));
    answer.push_back(repeated(gbnf_rule(next), 0, kCallsMax - 1));
  }
  append(answer, sequence_of(before_end(markup.after_last)));
  return answer;
}

Result<std::string> CallGrammar::text() {
  const RuleId root = writer_.add_rule("answer");
  GbnfSequence answer = {any_space()};
  append(answer, reasoning());
  if (!value_) {
    append(answer, calls());
  } else {
    const RuleId either = writer_.add_rule("said");
    writer_.add(either, {gbnf_rule(*value_)});
    if (has_calls_) writer_.add(either, calls());
    answer.push_back(gbnf_rule(either));
  }
  writer_.add(root, std::move(answer));
  if (!wrong_end_.empty()) {
    return fail(Code::kUnsupported,
                format_text("{} ends answers in this model's vocabulary, and is in the middle of "
                            "its tool calls",
                            wrong_end_));
  }
  return writer_.text(root);
}

// Reasoning that the prompt opened must be closed. If the prompt opened none, the model may reason.
GbnfSequence CallGrammar::reasoning() {
  const ReasoningFamily family = options_.format.reasoning;
  const ReasoningMarkup markup = reasoning_markup(family);
  const bool is_open = opens_reasoning(options_.prompt, family);
  const bool is_over = trim(options_.prompt).ends_with(markup.close);
  if (!is_open && (is_over || family == ReasoningFamily::kNone)) return {};
  std::vector<std::string> not_in_thoughts = ends_of_reasoning(options_.format);
  const ToolCallFormat& calls = tool_call_format(options_.format.tool_calls);
  if (calls.markup_is_tokens) {
    not_in_thoughts.insert(not_in_thoughts.end(), calls.silent.begin(), calls.silent.end());
  }
  const Result<Automaton> thoughts = Automaton::without(not_in_thoughts);
  SLIP_CHECK(thoughts.has_value(), "the table's texts are short");
  JsonText text(writer_);
  GbnfSequence sequence;
  if (!is_open) append(sequence, sequence_of(markup.open));
  sequence.push_back(text.bare(*thoughts));
  append(sequence, sequence_of(markup.close));
  append(sequence, sequence_of(markup.before_answer));
  sequence.push_back(any_space());
  const RuleId rule = writer_.add_rule("reasoning");
  writer_.add(rule, std::move(sequence));
  return {repeated(gbnf_rule(rule), is_open ? 1 : 0, 1)};
}

GbnfSequence CallGrammar::sequence_of(std::string_view markup) {
  GbnfSequence sequence;
  for (const MarkupToken& token : tokens_in(markup)) {
    const std::size_t at = markup.find(token.text);
    if (at == markup.npos) continue;
    append(sequence, text_of(markup.substr(0, at)));
    sequence.push_back(gbnf_token(token.token));
    if (token.ends_answer) wrong_end_ = token.text;
    markup.remove_prefix(at + token.text.size());
  }
  append(sequence, text_of(markup));
  return sequence;
}

GbnfSequence CallGrammar::text_of(std::string_view markup) const {
  GbnfSequence sequence;
  while (!markup.empty()) {
    const bool is_id = markup[0] == kAnyId;
    if (is_id || markup[0] == kAnyNumber) {
      sequence.push_back(is_id ? any_id() : any_number());
      markup.remove_prefix(1);
      continue;
    }
    const std::string_view text = markup.substr(0, markup.find_first_of(kPlaces));
    sequence.push_back(gbnf_literal(text));
    markup.remove_prefix(text.size());
  }
  return sequence;
}

std::string_view CallGrammar::before_end(std::string_view markup) const {
  for (const MarkupToken& token : tokens_in(markup)) {
    if (token.ends_answer) return markup.substr(0, markup.find(token.text));
  }
  return markup;
}

std::vector<MarkupToken> CallGrammar::tokens_in(std::string_view markup) const {
  if (!options_.markup_tokens || markup.empty()) return {};
  return options_.markup_tokens(markup);
}

}  // namespace slipstream
