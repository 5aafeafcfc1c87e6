// Compares random schemas of the supported part with a validator that shares nothing with the
// converter: every text that the grammar accepts is valid, and every valid value is accepted, if it
// is spelled as answers spell it.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "server/schema/json_spellings.h"
#include "server/schema/naive_validator.h"
#include "server/schema/schema_matcher.h"
#include "server/schema/schema_to_grammar.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

// One seed makes a whole schema or value. rapidcheck's own generators would shrink to smaller
// seeds, which are not smaller schemas. So the failing schema is printed instead.
class RandomJson {
 public:
  explicit RandomJson(std::uint32_t seed) : random_(seed) {}

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  bool chance(int percent) { return below(100) < percent; }

  Json schema() {
    Json root = some_schema(3);
    if (!root.is_object()) root = {{"anyOf", Json::array({root, {{"type", "null"}}})}};
    root["$defs"]["d"] = some_schema(2);
    root["$defs"]["e"] = some_schema(1);
    return root;
  }

  Json value(int depth) {
    switch (below(depth > 0 ? 9 : 6)) {
      case 0: return nullptr;
      case 1: return chance(50);
      case 2: return below(16) - 4;
      case 3: return (below(32) - 8) / 2.0;
      case 4:
      case 5: return text();
      case 6: return list(below(4), [&] { return value(depth - 1); });
      default: break;
    }
    Json object = Json::object();
    for (int i = below(4); i > 0; --i) object[name()] = value(depth - 1);
    return object;
  }

 private:
  template <typename Make>
  static Json list(int n, Make make) {
    Json all = Json::array();
    for (int i = 0; i < n; ++i) all.push_back(make());
    return all;
  }
  template <std::size_t N>
  std::string one_of(const char* const (&choices)[N]) {
    return choices[below(static_cast<int>(N))];
  }
  std::string name() { return one_of({"a", "b", "c", "ab", "\n"}); }
  std::string text() {
    return one_of({"", "a", "b", "ab", "aab", "abb", "😀", "\"\\", "a\nb", "x"});
  }
  std::string pattern() {
    return one_of({"^a", "b$", "a+b", "^[ab]{1,2}$", "^(a|bb)*$", "^[^a]*$", "a|^$", "^\\w+$"});
  }

  Json some_schema(int depth) {
    switch (below(depth > 0 ? 14 : 7)) {
      case 0: return chance(70);
      case 1: return {{"type", one_of({"null", "boolean", "integer", "number", "string"})}};
      case 2: return {{"enum", list(1 + below(4), [&] { return value(1); })}};
      case 3: return {{"const", value(1)}};
      case 4: return number_schema();
      case 5:
      case 6: return string_schema();
      case 7:
      case 8: return array_schema(depth);
      case 9:
      case 10: return object_schema(depth);
      case 11:
        return {{one_of({"anyOf", "oneOf"}),
                 list(1 + below(3), [&] { return some_schema(depth - 1); })}};
      case 12: {
        Json merged = some_schema(depth - 1);
        if (!merged.is_object()) merged = Json::object();
        merged["allOf"] = list(1 + below(2), [&] { return some_schema(depth - 1); });
        return merged;
      }
      default: return {{"$ref", one_of({"#/$defs/d", "#/$defs/e"})}};
    }
  }

  Json number_schema() {
    Json schema = {{"type", chance(60) ? "integer" : "number"}};
    if (chance(50)) schema[one_of({"minimum", "exclusiveMinimum"})] = (below(40) - 20) / 2.0;
    if (chance(50)) schema[one_of({"maximum", "exclusiveMaximum"})] = below(130) / 2.0;
    if (chance(30)) schema["multipleOf"] = (1 + below(6)) / 2.0;
    return schema;
  }

  Json string_schema() {
    Json schema = Json::object();
    if (chance(80)) schema["type"] = "string";
    if (chance(30)) schema["minLength"] = below(3);
    if (chance(30)) schema["maxLength"] = below(4);
    if (chance(50)) schema["pattern"] = pattern();
    return schema;
  }

  Json array_schema(int depth) {
    Json schema = Json::object();
    if (chance(80)) schema["type"] = "array";
    if (chance(70)) schema["items"] = some_schema(depth - 1);
    if (chance(40)) {
      schema["prefixItems"] = list(1 + below(2), [&] { return some_schema(depth - 1); });
    }
    if (chance(30)) schema["minItems"] = below(3);
    if (chance(30)) schema["maxItems"] = below(4);
    return schema;
  }

  Json object_schema(int depth) {
    Json schema = Json::object();
    if (chance(80)) schema["type"] = "object";
    for (int i = below(4); i > 0; --i) schema["properties"][name()] = some_schema(depth - 1);
    if (chance(50)) schema["required"] = list(1 + below(2), [&] { return name(); });
    if (chance(60)) schema["additionalProperties"] = chance(50) ? Json(false) : some_schema(0);
    if (chance(20)) schema["patternProperties"][pattern()] = some_schema(depth - 1);
    if (chance(20)) schema["propertyNames"] = string_schema();
    if (chance(15)) schema["minProperties"] = below(3);
    if (chance(15)) schema["maxProperties"] = below(4);
    return schema;
  }

  std::mt19937 random_;
};

bool matches_in_some_order(const std::string& grammar, const Json& value) {
  return std::ranges::any_of(spellings_of(value), [&grammar](const std::string& text) {
    return SchemaMatcher::matches(grammar, text);
  });
}

// An answer of a model that picks random bytes; nullopt if it does not end.
std::optional<std::string> random_answer(const std::string& grammar, RandomJson& random) {
  SchemaMatcher matcher(grammar);
  std::string answer;
  while (answer.size() < 2000) {
    if (matcher.may_end() && random.chance(50)) return answer;
    const std::string bytes = matcher.allowed();
    if (bytes.empty()) return matcher.may_end() ? std::optional(answer) : std::nullopt;
    char next = bytes[static_cast<std::size_t>(random.below(static_cast<int>(bytes.size())))];
    // Prefers to close what is open: there are many ways to continue and only one to stop.
    for (const char closing : {'"', ']', '}'}) {
      const bool tired = random.chance(answer.size() < 100 ? 30 : 90);
      if (tired && bytes.find(closing) != bytes.npos) next = closing;
    }
    EXPECT_TRUE(matcher.accept(next));
    answer += next;
  }
  return std::nullopt;
}

RC_GTEST_PROP(SchemaProperty, GrammarsAgreeWithAValidator, (std::uint32_t seed)) {
  RandomJson random(seed);
  const Json schema = random.schema();
  RC_LOG() << schema.dump() << "\n";
  const NaiveValidator validator(schema);
  const Result<std::string> grammar = grammar_of_schema(schema);
  if (!grammar) {
    const bool has_no_value = grammar.error().message.ends_with("no value meets it");
    RC_CLASSIFY(has_no_value, "no value");
    RC_CLASSIFY(!has_no_value, "refused");
    for (int i = 0; has_no_value && i < 20; ++i) RC_ASSERT(!validator.accepts(random.value(2)));
    return;
  }
  RC_LOG() << *grammar;
  for (int i = 0; i < 8; ++i) {
    const std::optional<std::string> answer = random_answer(*grammar, random);
    if (!answer) continue;
    const Json value = Json::parse(*answer, nullptr, false);
    RC_LOG() << "answer " << *answer << "\n";
    RC_ASSERT(!value.is_discarded());
    RC_ASSERT(validator.accepts(value));
  }
  for (int i = 0; i < 12; ++i) {
    const Json value = random.value(2);
    RC_LOG() << "value " << value.dump() << "\n";
    RC_ASSERT(matches_in_some_order(*grammar, value) == validator.accepts(value));
  }
}

}  // namespace
}  // namespace slipstream
