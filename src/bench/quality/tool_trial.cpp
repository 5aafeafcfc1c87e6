#include "bench/quality/tool_trial.h"

#include <array>

#include "base/format.h"
#include "bench/quality/name_words.h"
#include "server/schema/naive_validator.h"
#include "server/schema/schema_to_grammar.h"

namespace slipstream::quality {
namespace {

constexpr const char* kToolName = "lookup_name";
// More tokens than any answer below needs. A call that breaks off is not valid.
constexpr int kCallTokensMax = 96;
constexpr int kSchemaTokensMax = 256;

Json parameters() {
  return {{"type", "object"},
          {"properties",
           {{"first", {{"type", "string"}, {"description", "The first name of a person"}}}}},
          {"required", {"first"}},
          {"additionalProperties", false}};
}

Json tools() {
  return Json::array({{{"type", "function"},
                       {"function",
                        {{"name", kToolName},
                         {"description", "Finds a person's full name by the first name"},
                         {"parameters", parameters()}}}}});
}

// Every text and list has a maximum length, so that a model must reach an end.
std::vector<Json> schemas() {
  const Json word = {{"type", "string"}, {"minLength", 1}, {"maxLength", 12}};
  return {
      {{"title", "guest"},
       {"type", "object"},
       {"properties",
        {{"first", word},
         {"last", word},
         {"age", {{"type", "integer"}, {"minimum", 0}, {"maximum", 130}}}}},
       {"required", {"first", "last", "age"}},
       {"additionalProperties", false}},
      {{"title", "list"},
       {"type", "array"},
       {"items", {{"enum", {"red", "green", "blue"}}}},
       {"minItems", 2},
       {"maxItems", 4}},
      {{"title", "nested"},
       {"type", "object"},
       {"properties",
        {{"kind", {{"const", "visit"}}},
         {"confirmed", {{"type", "boolean"}}},
         {"guest",
          {{"type", "object"},
           {"properties",
            {{"name", word}, {"table", {{"type", "integer"}, {"minimum", 1}, {"maximum", 20}}}}},
           {"required", {"name", "table"}},
           {"additionalProperties", false}}}}},
       {"required", {"kind", "confirmed", "guest"}},
       {"additionalProperties", false}},
  };
}

Json parse(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace

ToolCallOutcome judge_tool_call(const ChatAnswer& answer, const std::string& asked) {
  ToolCallOutcome outcome{.asked = asked, .answer = answer.content};
  if (answer.calls.empty()) return outcome;
  const ChatAnswer::Call& call = answer.calls.front();
  outcome.answer = format_text("{}({})", call.name, call.arguments);
  outcome.is_call = answer.calls.size() == 1 && call.complete;
  outcome.right_name = outcome.is_call && call.name == kToolName;
  const Json arguments = parse(call.arguments);
  outcome.valid = outcome.right_name && !arguments.is_discarded() &&
                  NaiveValidator(parameters()).accepts(arguments);
  outcome.as_expected = outcome.valid && arguments["first"] == asked;
  return outcome;
}

Result<std::vector<ToolCallOutcome>> try_tool_calls(const Asker& asker, int n_calls,
                                                    const OnProgress& on_progress) {
  std::vector<ToolCallOutcome> outcomes;
  for (int i = 0; i < n_calls; ++i) {
    // Steps of 7, which has no common divisor with the number of words.
    const std::string asked(kNameWords[static_cast<std::size_t>(i) * 7 % kNameWords.size()]);
    const Result<Reply> reply =
        asker.ask({.text = format_text("Look up the full name of \"{}\".", asked),
                   .tools = tools(),
                   .n_tokens_max = kCallTokensMax});
    if (!reply) return std::unexpected(reply.error());
    outcomes.push_back(judge_tool_call(reply->answer, asked));
    if (on_progress) on_progress(static_cast<double>(i + 1) / n_calls);
  }
  return outcomes;
}

Result<std::vector<SchemaOutcome>> try_schemas(const Asker& asker, const OnProgress& on_progress) {
  constexpr std::array<const char*, 3> kRequests = {
      "Describe a guest of a small hotel.", "We met amber lantern today. Write it down as JSON.",
      "Answer with JSON."};
  std::vector<SchemaOutcome> outcomes;
  const std::vector<Json> all = schemas();
  for (std::size_t i = 0; i < all.size() * kRequests.size(); ++i) {
    const Json& schema = all[i / kRequests.size()];
    const Result<std::string> grammar = grammar_of_schema(schema);
    if (!grammar) return std::unexpected(grammar.error());
    const Result<Reply> reply = asker.ask({.text = kRequests[i % kRequests.size()],
                                           .grammar = *grammar,
                                           .n_tokens_max = kSchemaTokensMax});
    if (!reply) return std::unexpected(reply.error());
    const Json value = parse(reply->answer.content);
    outcomes.push_back({.schema = schema["title"],
                        .answer = reply->answer.content,
                        .valid = !value.is_discarded() && NaiveValidator(schema).accepts(value)});
    if (on_progress) {
      on_progress(static_cast<double>(i + 1) / static_cast<double>(all.size() * kRequests.size()));
    }
  }
  return outcomes;
}

}  // namespace slipstream::quality
