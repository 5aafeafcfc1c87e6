// Schemas made to take a lot of time or memory: each must end early with an error. The limit is
// counted in steps (SchemaLimits::schema_steps_max), not seconds; the time limit here is far beyond
// what was measured.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "server/schema/schema_matcher.h"
#include "server/schema/schema_to_grammar.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

void expect_refused_soon(std::string_view name, const Json& schema) {
  const std::clock_t start = std::clock();  // CPU time of this process only
  const Result<std::string> grammar = grammar_of_schema(schema);
  const double elapsed_ms = 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_FALSE(grammar.has_value()) << name;
  if (grammar) return;
  EXPECT_LT(elapsed_ms, 10'000) << name;
  EXPECT_LT(grammar.error().message.size(), 500U);
  std::printf("%-32s %8.1f ms  %s\n", std::string(name).c_str(), elapsed_ms,
              grammar.error().message.c_str());
}

Json nested(std::size_t depth, const std::function<Json(Json)>& wrap, Json inside) {
  for (std::size_t i = 0; i < depth; ++i) inside = wrap(std::move(inside));
  return inside;
}

Json list_of(std::size_t n, const std::function<Json(std::size_t)>& make) {
  Json list = Json::array();
  for (std::size_t i = 0; i < n; ++i) list.push_back(make(i));
  return list;
}

TEST(HostileSchema, Counts) {
  expect_refused_soon("maxItems 1e9", {{"type", "array"}, {"maxItems", 1'000'000'000}});
  expect_refused_soon("minItems 1e18", {{"type", "array"}, {"minItems", 1e18}});
  expect_refused_soon("maxLength 1e9", {{"type", "string"}, {"maxLength", 1'000'000'000}});
  expect_refused_soon("maxLength 1e9 and pattern",
                      {{"type", "string"}, {"maxLength", 1'000'000'000}, {"pattern", "a"}});
  expect_refused_soon("maxProperties 1e9", {{"type", "object"}, {"maxProperties", 1'000'000'000}});
  Json many = {{"type", "object"}, {"maxProperties", 4000}, {"additionalProperties", false}};
  for (int i = 0; i < 5000; ++i) many["properties"][std::to_string(i)] = true;
  expect_refused_soon("4,000 of 5,000 properties", many);
}

TEST(HostileSchema, Nesting) {
  const auto in_array = [](Json inside) { return Json{{"items", std::move(inside)}}; };
  expect_refused_soon("100,000 levels", nested(100'000, in_array, Json::object()));
  const auto in_all_of = [](Json inside) {
    return Json{{"allOf", Json::array({std::move(inside)})}};
  };
  expect_refused_soon("100 allOf", nested(60, in_all_of, nested(40, in_array, {{"type", "x"}})));
  Json chain = {{"$ref", "#/$defs/0"}};
  for (int i = 0; i < 3000; ++i) {
    chain["$defs"][std::to_string(i)] = {{"$ref", format_text("#/$defs/{}", i + 1)}};
  }
  chain["$defs"]["3000"] = {{"type", "null"}};
  expect_refused_soon("3,000 references in a row", chain);
  Json ring = chain;
  ring["$defs"]["40"] = {{"$ref", "#/$defs/0"}};
  expect_refused_soon("a ring of references", ring);
}

TEST(HostileSchema, Alternatives) {
  const auto three = list_of(3, [](std::size_t i) { return Json{{"minLength", i}}; });
  expect_refused_soon(
      "40 anyOf in allOf",
      {{"allOf", list_of(40, [&](std::size_t) { return Json{{"anyOf", three}}; })}});
  const auto doubled = [](const Json& inside) {
    return Json{{"anyOf", Json::array({inside, inside})}};
  };
  expect_refused_soon("2^12 anyOf", nested(12, doubled, {{"type", "string"}}));
  // The same by reference, which takes few bytes.
  Json few = {{"$ref", "#/$defs/0"}};
  for (int i = 0; i < 40; ++i) {
    const Json next = {{"$ref", format_text("#/$defs/{}", i + 1)}};
    few["$defs"][std::to_string(i)] = {{"anyOf", Json::array({next, next})}};
  }
  few["$defs"]["40"] = {{"type", "string"}};
  expect_refused_soon("2^40 anyOf by reference", few);
  expect_refused_soon("oneOf of 1,000", {{"oneOf", list_of(1000, [](std::size_t i) {
                                            return Json{{"pattern", format_text("^{}", i)},
                                                        {"type", "string"}};
                                          })}});
}

// Conjunctions of the same schemas in ever different combinations.
TEST(HostileSchema, Conjunctions) {
  Json schema = {{"$ref", "#/$defs/all"}};
  Json all = Json::array();
  constexpr int kPrimes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};
  for (const int prime : kPrimes) {
    for (int i = 0; i < prime; ++i) {
      schema["$defs"][format_text("{}-{}", prime, i)] = {
          {"type", "array"},
          {"minItems", 1},
          {"items", {{"$ref", format_text("#/$defs/{}-{}", prime, (i + 1) % prime)}}}};
    }
    all.push_back({{"$ref", format_text("#/$defs/{}-0", prime)}});
  }
  schema["$defs"]["all"] = {{"allOf", all}};
  expect_refused_soon("rings of different length", schema);
}

TEST(HostileSchema, ManySchemasOfTheSameParts) {
  const auto object = [](std::size_t i) {
    Json schema = {{"type", "object"}};
    for (std::size_t p = 0; p < 8; ++p) {
      schema["properties"][format_text("{} {}", i % 100, p)] = {{"minLength", i}};
    }
    return schema;
  };
  expect_refused_soon("1,500 objects at once", {{"allOf", list_of(1500, object)}});
  Json array = {
      {"allOf", list_of(2000, [](std::size_t i) { return Json{{"items", {{"minLength", i}}}}; })}};
  array["prefixItems"] = list_of(5000, [](std::size_t i) { return Json{{"maxLength", i}}; });
  array["type"] = "array";
  expect_refused_soon("2,000 arrays at once", array);
}

TEST(HostileSchema, Patterns) {
  std::string many_ranges;
  for (int i = 0; i < 500; ++i) many_ranges += format_text("\\u{:04x}", 0x100 + 2 * i);
  for (const std::string& pattern :
       {std::string("(a|b)*a(a|b){30}"), std::string("((a{1000}){1000}){1000}"),
        std::string("a{1000000000}"), std::string(100'000, 'a'), std::string("(.*a){20}b.{20}$"),
        std::string(1000, '('), "([" + many_ranges + "](a?){2000}){8}",
        "^" + std::string(4000, '.') + "x?$"}) {
    expect_refused_soon("pattern " + pattern.substr(0, 20),
                        {{"type", "string"}, {"pattern", pattern}, {"maxLength", 4000}});
  }
  Json all = Json::array();
  for (int i = 2; i < 40; ++i) all.push_back({{"pattern", format_text("^(.{{{}}})*$", i)}});
  expect_refused_soon("38 patterns", {{"type", "string"}, {"allOf", all}});
  Json keys = {{"type", "object"}};
  for (int i = 0; i < 20; ++i) keys["patternProperties"][format_text("{}", i)] = true;
  expect_refused_soon("20 patternProperties", keys);
}

TEST(HostileSchema, Sizes) {
  expect_refused_soon("enum of 100,000",
                      {{"enum", list_of(100'000, [](std::size_t i) { return Json(i); })}});
  expect_refused_soon("enum of 10,000 long texts",
                      {{"enum", list_of(10'000, [](std::size_t i) {
                          return Json(std::string(26, 'a') + std::to_string(i));
                        })}});
  expect_refused_soon("enum of small numbers",
                      {{"allOf", list_of(16, [](std::size_t) {
                          return Json{{"enum", list_of(2000, [](std::size_t i) {
                                         return Json(1e-300 / static_cast<double>(i + 1));
                                       })}};
                        })}});
  Json wide = {{"type", "object"}};
  for (int i = 0; i < 5000; ++i) wide["properties"][format_text("{:060}", i)] = true;
  expect_refused_soon("5,000 long names", wide);
  Json required = {{"type", "object"}};
  required["required"] = list_of(20'000, [](std::size_t i) { return Json(std::to_string(i)); });
  expect_refused_soon("20,000 required", required);
  expect_refused_soon("not JSON", Json("\xC3"));
}

}  // namespace
}  // namespace slipstream
