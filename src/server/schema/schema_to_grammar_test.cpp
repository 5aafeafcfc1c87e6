#include "server/schema/schema_to_grammar.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/schema/schema_matcher.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

std::string grammar_of(std::string_view schema) {
  Result<std::string> grammar = grammar_of_schema(Json::parse(schema));
  EXPECT_TRUE(grammar.has_value()) << schema << ": " << grammar.error().message;
  return grammar.value_or("root ::= \"refused\"");
}

using Texts = std::vector<std::string_view>;

void expect(std::string_view schema, const Texts& valid, const Texts& invalid) {
  const std::string grammar = grammar_of(schema);
  for (const std::string_view text : valid) {
    EXPECT_TRUE(SchemaMatcher::matches(grammar, text)) << schema << "\n" << text << "\n" << grammar;
  }
  for (const std::string_view text : invalid) {
    EXPECT_FALSE(SchemaMatcher::matches(grammar, text)) << schema << "\n"
                                                        << text << "\n"
                                                        << grammar;
  }
}

void expect_refused(std::string_view schema, Code code, std::string_view message) {
  const Result<std::string> grammar = grammar_of_schema(Json::parse(schema));
  ASSERT_FALSE(grammar.has_value()) << schema << "\n" << *grammar;
  EXPECT_EQ(grammar.error().code, code) << grammar.error().message;
  EXPECT_NE(grammar.error().message.find(message), std::string::npos) << grammar.error().message;
}

TEST(SchemaToGrammar, AnyObject) {
  const std::string grammar = grammar_of_any_object();
  for (const std::string_view text :
       {R"({})", R"({"a":1})", R"({"a": [1, 2,{"b":null}], "c": "d"})"}) {
    EXPECT_TRUE(SchemaMatcher::matches(grammar, text)) << text;
  }
  for (const std::string_view text : {R"([])", R"({"a"})", R"({"a":1,})", R"({ "a":1})", R"(1)"}) {
    EXPECT_FALSE(SchemaMatcher::matches(grammar, text)) << text;
  }
}

TEST(SchemaToGrammar, Types) {
  expect(R"({"type":"null"})", {"null"}, {"nul", "0", ""});
  expect(R"({"type":"boolean"})", {"true", "false"}, {"True", "1"});
  expect(R"({"type":"integer"})", {"0", "-1", "42", "18446744073709551615"},
         {"-0", "01", "1.0", "1e3", "+1", "-", "123456789012345678901"});
  expect(R"({"type":"number"})", {"0", "-0.5", "1.50", "1e3", "1E-30", "2.5e+199"},
         {".5", "1.", "01", "1e", "1e999"});
  expect(R"({"type":["integer","null"]})", {"1", "null"}, {"1.5", "\"1\""});
  expect(R"({"type":["integer","number"]})", {"1", "1.5"}, {"null"});
  expect("true", {"null", "[1,[2],{}]", "\"a\""}, {"", "a"});
}

TEST(SchemaToGrammar, StringsAreSpelledInOneWay) {
  expect(R"({"type":"string"})",
         {R"("")", R"("é😀")", R"("\"\\\b\f\n\r\t")", R"("\u0000\u001f\u000b")", "\"\x7F/\""},
         {R"("\/")", R"("\u0041")", R"("\u001F")", "\"\n\"", R"("a)", R"("\ud83d")", "\"\xC3\""});
}

TEST(SchemaToGrammar, LengthsCountCharacters) {
  expect(R"({"type":"string","minLength":2,"maxLength":3})", {R"("ab")", R"("😀é\n")"},
         {R"("a")", R"("abcd")", R"("\n")"});
  expect(R"({"type":"string","maxLength":0})", {R"("")"}, {R"("a")"});
  expect(R"({"minLength":2.0})", {R"("ab")", "1"}, {R"("a")"});
}

TEST(SchemaToGrammar, Integers) {
  expect(R"({"type":"integer","minimum":-5,"maximum":123})",
         {"-5", "-1", "0", "9", "10", "99", "100", "123"},
         {"-6", "-10", "124", "200", "1000", "-0", "00"});
  expect(R"({"type":"integer","exclusiveMinimum":5})", {"6", "10", "99999999999999999999"},
         {"5", "4", "-6", "0"});
  expect(R"({"type":"integer","maximum":-10})", {"-10", "-11", "-100"}, {"-9", "0", "10", "11"});
  expect(R"({"type":"integer","minimum":0.5,"maximum":2.5})", {"1", "2"}, {"0", "3"});
  expect(R"({"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991})",
         {"9007199254740991", "-9007199254740991"}, {"9007199254740992", "-9007199254740992"});
  expect(R"({"type":"integer","multipleOf":5,"minimum":1,"maximum":20})", {"5", "10", "15", "20"},
         {"0", "1", "25", "12"});
  expect(R"({"type":"integer","multipleOf":1.5})", {"0", "3", "-6", "9"}, {"1", "2", "4"});
}

TEST(SchemaToGrammar, Numbers) {
  expect(R"({"type":"number","minimum":0})", {"0", "0.0", "12.75", "3"}, {"-0", "-1", "1e3"});
  expect(R"({"type":"number","exclusiveMinimum":0,"maximum":1})",
         {"0.5", "0.001", "1", "1.0", "1.00"}, {"0", "0.0", "1.01", "2", "-1"});
  expect(R"({"type":"number","minimum":-1.25,"exclusiveMaximum":12.5})",
         {"-1.25", "-1.2", "-0.5", "0", "12", "12.49", "9.99"},
         {"-1.26", "-1.3", "-2", "12.5", "12.50", "12.51", "13"});
  expect(R"({"type":"number","multipleOf":0.01})", {"1", "1.5", "-1.25", "0.1"}, {"1.255", "1e2"});
  expect(R"({"type":"number","multipleOf":0.5})", {"1", "1.5", "-2.0"}, {"1.25", "1.4"});
}

TEST(SchemaToGrammar, EnumAndConst) {
  expect(R"({"enum":["a","b\n",1,1.5,null,true,[1,2],{"k":"v","l":[]}]})",
         {R"("a")", R"("b\n")", "1", "1.5", "null", "true", "[1,2]", "[1, 2]",
          R"({"k":"v","l":[]})", R"({"k": "v", "l": []})"},
         {"2", "1.0", R"("c")", "[1]", R"({"l":[],"k":"v"})", "[ 1,2]"});
  expect(R"({"const":1.0})", {"1"}, {"1.0", "2"});
  expect(R"({"const":1e300})", {"1e+300"}, {"1"});
  expect(R"({"type":"string","enum":["a",1,"bcd"],"maxLength":2})", {R"("a")"}, {"1", R"("bcd")"});
  expect(R"({"allOf":[{"enum":[1,2,3]},{"enum":[2.0,3,4]},{"not":false,"minimum":3}]})", {"3"},
         {"1", "2", "4"});
  expect(R"({"enum":[{"a":1},{"a":"x"}],"properties":{"a":{"type":"string"}}})", {R"({"a":"x"})"},
         {R"({"a":1})"});
}

TEST(SchemaToGrammar, ObjectsKeepTheOrderOfTheSchema) {
  constexpr std::string_view kSchema = R"({"type":"object","properties":{"b":{"type":"integer"},
      "a":{"type":"string"},"c":{"type":"null"}},"required":["a"],"additionalProperties":false})";
  expect(kSchema,
         {R"({"a":""})", R"({"b":1,"a":""})", R"({"a":"","c":null})",
          R"({"b": 1, "a": "", "c": null})"},
         {R"({})", R"({"b":1})", R"({"a":"","b":1})", R"({"a":"","a":""})", R"({"a":"",})",
          R"({"a":"","d":1})", R"({,"a":""})", R"({"b":1 ,"a":""})"});
}

TEST(SchemaToGrammar, AdditionalProperties) {
  expect(R"({"type":"object","properties":{"ab":{"type":"integer"}}})",
         {R"({})", R"({"ab":1,"a":"x"})", R"({"abc":null})", R"({"":1})", R"({"b":1,"c":2})"},
         {R"({"ab":"x"})", R"({"a":1,"ab":2})", R"({"\u0061b":"x"})"});
  expect(R"({"type":"object","additionalProperties":{"type":"integer"}})",
         {R"({})", R"({"x":1,"y":2})"}, {R"({"x":"y"})"});
  expect(R"({"type":"object","required":["z","a"],"additionalProperties":{"type":"integer"}})",
         {R"({"a":1,"z":2})", R"({"a":1,"z":2,"b":3})"},
         {R"({"a":1})", R"({"z":2})", R"({"a":1,"z":"x"})"});
  expect(R"({"type":"object","patternProperties":{"^n_":{"type":"integer"},"x$":{"maximum":9}},
             "additionalProperties":false})",
         {R"({"n_a":12})", R"({"x":9})", R"({"n_x":9})", R"({"ax":"s"})"},
         {R"({"a":1})", R"({"n_x":10})", R"({"n_x":"s"})", R"({"n_a":"s"})"});
  expect(
      R"({"type":"object","propertyNames":{"pattern":"^[a-c]+$"},"properties":{"a":true,"d":true}})",
      {R"({"a":1,"bc":2})"}, {R"({"d":1})", R"({"e":1})", R"({"":1})"});
}

TEST(SchemaToGrammar, NumbersOfProperties) {
  expect(R"({"type":"object","properties":{"a":{},"b":{},"c":{}},"minProperties":2,
             "additionalProperties":false})",
         {R"({"a":1,"b":1})", R"({"b":1,"c":1})", R"({"a":1,"b":1,"c":1})"},
         {R"({})", R"({"b":1})"});
  expect(R"({"type":"object","properties":{"a":{}},"maxProperties":2})",
         {R"({})", R"({"a":1,"b":1})", R"({"x":1,"y":1})"}, {R"({"a":1,"b":1,"c":1})"});
  expect(R"({"type":"object","minProperties":1})", {R"({"a":1})", R"({"a":1,"b":2})"}, {R"({})"});
  expect_refused(R"({"properties":{"o":{"type":"object","minProperties":2}}})", Code::kUnsupported,
                 "#/properties/o: minProperties of 2");
}

TEST(SchemaToGrammar, Arrays) {
  expect(R"({"type":"array","items":{"type":"integer"}})", {"[]", "[1]", "[1,2, 3]"},
         {"[1,]", "[,1]", "[\"a\"]", "[1 ,2]"});
  expect(R"({"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3})",
         {"[1,2]", "[1,2,3]"}, {"[]", "[1]", "[1,2,3,4]"});
  expect(R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],
             "items":{"type":"null"},"minItems":1})",
         {"[1]", R"([1,"a"])", R"([1,"a",null,null])"}, {"[]", "[null]", R"([1,"a",1])"});
  expect(R"({"type":"array","prefixItems":[{"type":"integer"}],"items":false})", {"[]", "[1]"},
         {"[1,2]"});
  expect(R"({"type":"array","items":false})", {"[]"}, {"[1]"});
  expect(R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"});
}

TEST(SchemaToGrammar, AnyOfAndAllOf) {
  expect(R"({"anyOf":[{"type":"string","maxLength":1},{"type":"integer","minimum":5}]})",
         {R"("a")", "5"}, {R"("ab")", "4"});
  expect(R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],
             "allOf":[{"properties":{"b":{"type":"string"}},"required":["b"]},
                      {"properties":{"a":{"minimum":3}}}],"additionalProperties":true})",
         {R"({"a":3,"b":"x"})", R"({"a":4,"b":"","c":1})"},
         {R"({"a":2,"b":"x"})", R"({"a":3})", R"({"b":"x"})"});
  expect(R"({"allOf":[{"pattern":"^a"},{"pattern":"b$"},{"type":"string","maxLength":3}]})",
         {R"("ab")", R"("axb")"}, {R"("a")", R"("b")", R"("axxb")", "1"});
  // additionalProperties of one branch does not see the properties of other branches.
  expect(R"({"type":"object","allOf":[{"properties":{"a":{}},"additionalProperties":false},
                                      {"properties":{"b":{}}}]})",
         {R"({})", R"({"a":1})"}, {R"({"b":1})", R"({"a":1,"b":1})"});
}

TEST(SchemaToGrammar, OneOfWithBranchesThatExcludeEachOther) {
  expect(R"({"oneOf":[{"type":"string"},{"type":"null"}]})", {R"("a")", "null"}, {"1"});
  expect(R"({"type":"object","properties":{"kind":{"type":"string"}},"oneOf":[
      {"properties":{"kind":{"const":"a"},"x":{"type":"integer"}},"required":["kind","x"]},
      {"properties":{"kind":{"const":"b"},"y":{"type":"integer"}},"required":["kind","y"]}]})",
         {R"({"kind":"a","x":1})", R"({"kind":"b","y":1})"}, {R"({"kind":"a","y":1})"});
  expect(R"({"oneOf":[{"type":"integer","maximum":3},{"type":"integer","minimum":4}]})", {"3", "4"},
         {"\"a\""});
  expect(R"({"oneOf":[{"type":"string","pattern":"^a"},{"type":"string","pattern":"^b"}]})",
         {R"("a")", R"("b")"}, {R"("c")"});
  expect_refused(R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", Code::kUnsupported,
                 "#/oneOf/1: a value might match");
}

TEST(SchemaToGrammar, References) {
  expect(R"({"$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},
             "next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},
             "required":["v","next"],"additionalProperties":false}},"$ref":"#/$defs/node"})",
         {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
         {R"({"v":1})", R"({"v":1,"next":{}})"});
  expect(R"({"type":"array","items":{"$ref":"#"}})", {"[]", "[[],[[]]]"}, {"[1]"});
  expect(R"({"$defs":{"a/b~%":{"type":"null"}},"$ref":"#/$defs/a~1b~0%25"})", {"null"}, {"1"});
  expect(R"({"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a","maxLength":1})", {R"("a")"},
         {R"("ab")", "1"});
}

TEST(SchemaToGrammar, RefusesReferencesThatLeadNowhere) {
  expect_refused(R"({"$ref":"#"})", Code::kInvalidArgument, "#: refers to itself");
  expect_refused(R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},
                     "properties":{"x":{"$ref":"#/$defs/a"}}})",
                 Code::kInvalidArgument, "refers to itself");
  expect_refused(R"({"$ref":"#/$defs/none"})", Code::kInvalidArgument, "#/$ref: refers to nothing");
  expect_refused(R"({"$ref":"https://example.com/a.json"})", Code::kUnsupported, "#/$ref: only");
  expect_refused(R"({"$ref":"#anchor"})", Code::kUnsupported, "#/$ref: only");
}

TEST(SchemaToGrammar, RefusesSchemasWithoutValues) {
  expect_refused("false", Code::kInvalidArgument, "no value meets it");
  expect_refused(R"({"type":"string","minLength":3,"maxLength":2})", Code::kInvalidArgument,
                 "no value meets it");
  expect_refused(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
                 Code::kInvalidArgument, "no value meets it");
  expect_refused(R"({"type":"integer","minimum":3,"maximum":2})", Code::kInvalidArgument,
                 "no value meets it");
  expect_refused(R"({"type":"integer","exclusiveMinimum":2,"exclusiveMaximum":3})",
                 Code::kInvalidArgument, "no value meets it");
  // A branch that cannot be finished is left out.
  expect(R"({"properties":{"a":false,"b":{"type":"array","items":false}},"type":"object",
             "additionalProperties":false})",
         {R"({})", R"({"b":[]})"}, {R"({"a":1})", R"({"b":[1]})"});
}

TEST(SchemaToGrammar, NamesTheKeywordItRefuses) {
  for (const auto& [schema, message] : std::vector<std::pair<std::string_view, std::string_view>>{
           {R"({"properties":{"a":{"if":true}}})", "#/properties/a/if: "},
           {R"({"items":{"uniqueItems":true}})", "#/items/uniqueItems: "},
           {R"({"not":{"type":"string"}})", "#/not: "},
           {R"({"nullable":true})", "#/nullable: "},
           {R"({"$schema":"https://example.com/dialect"})", "#/$schema: "},
           {R"({"dependentRequired":{}})", "#/dependentRequired: "},
           {R"({"type":"string","pattern":"(?=a)b"})", "#/pattern: character"},
           {R"({"type":"string","format":"regex"})", "#/format: "},
           {R"({"items":{"$id":"https://example.com/"}})", "#/items/$id: "},
           {R"({"multipleOf":12345})", "#/multipleOf: "},
           {R"({"minimum":1e30})", "#/minimum: "}}) {
    expect_refused(schema, Code::kUnsupported, message);
  }
  for (const auto& [schema, message] : std::vector<std::pair<std::string_view, std::string_view>>{
           {R"({"type":"text"})", "#/type: "},
           {R"({"type":[]})", "#/type: "},
           {R"({"properties":{"a/b":{"minLength":-1}}})", "#/properties/a~1b/minLength: "},
           {R"({"minItems":1.5})", "#/minItems: "},
           {R"({"items":[{}]})", "#/items: "},
           {R"({"anyOf":[]})", "#/anyOf: "},
           {R"({"allOf":[1]})", "#/allOf/0: "},
           {R"({"enum":1})", "#/enum: "},
           {R"({"multipleOf":0})", "#/multipleOf: "},
           {R"({"exclusiveMinimum":true})", "#/exclusiveMinimum: "},
           {R"({"pattern":"("})", "#/pattern: character"},
           {"[]", "#: expected a schema"}}) {
    expect_refused(schema, Code::kInvalidArgument, message);
  }
}

TEST(SchemaToGrammar, AnnotationsDemandNothing) {
  expect(R"({"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/a",
             "title":"t","description":"d","default":1,"examples":[1],"deprecated":true,
             "readOnly":true,"writeOnly":true,"$comment":"c","x-order":1,"format":"int32",
             "type":"integer"})",
         {"1"}, {"1.5"});
}

}  // namespace
}  // namespace slipstream
