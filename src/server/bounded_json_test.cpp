#include "server/bounded_json.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "base/format.h"
#include "server/http/http_limits.h"
#include "server/json.h"

namespace slipstream {
namespace {

std::string nested(std::size_t depth, std::string_view open, std::string_view close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  text += "1";
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(BoundedJson, ReadsWhatOrderedJsonReads) {
  for (
      const std::string_view text :
      {R"({"b": [1, -2, 3.5, 1e300, "é\u00e9\n", true, null, {}, []], "a": {"x": {"y": 18446744073709551615}}})",
       "[]", "{}", "7", "\"text\"", "null"}) {
    const auto read = parse_bounded(text);
    ASSERT_TRUE(read.has_value()) << text << read.error().message;
    EXPECT_EQ(read->dump(), Json::parse(text).dump());
  }
}

TEST(BoundedJson, TheLastOfEqualNamesCountsWhereTheFirstStood) {
  EXPECT_EQ(parse_bounded(R"({"a": 1, "b": 2, "a": 3})")->dump(), R"({"a":3,"b":2})");
  std::string many = R"({"x": 0)";
  for (int i = 0; i < 100; ++i) many += format_text(R"(, "k{}": {})", i % 50, i);
  const auto read = parse_bounded(many + "}");
  EXPECT_EQ(read->dump(), Json::parse(many + "}").dump());
  EXPECT_EQ(read->size(), 51);
}

TEST(BoundedJson, WhatIsNoneIsSaidShortly) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{} {}"), std::string("[1e400]"),
        std::string("\"\xff\""), "[" + std::string(1 << 20, 'x'),
        "\"" + std::string(1 << 20, 'x')}) {
    const auto read = parse_bounded(text);
    ASSERT_FALSE(read.has_value()) << text.substr(0, 20);
    EXPECT_EQ(read.error().code, Code::kInvalidArgument);
    EXPECT_LT(read.error().message.size(), 300U);
  }
}

TEST(BoundedJson, NestingIsBoundedAtTheSizeOfABody) {
  const std::size_t n = kJsonLimits.json_nesting_max;
  EXPECT_TRUE(parse_bounded(nested(n, "[", "]")).has_value());
  EXPECT_TRUE(parse_bounded(nested(n, R"({"a":)", "}")).has_value());
  for (const std::size_t depth : {n + 1, kHttpLimits.http_body_bytes_max / 8}) {
    EXPECT_EQ(parse_bounded(nested(depth, "[", "]")).error().code, Code::kUnsupported);
    EXPECT_EQ(parse_bounded(nested(depth, R"({"a":)", "}")).error().code, Code::kUnsupported);
  }
  EXPECT_FALSE(parse_bounded(std::string(kHttpLimits.http_body_bytes_max, '[')).has_value());
}

TEST(BoundedJson, ValuesAreBounded) {
  JsonLimits limits;
  limits.json_values_max = 4;
  EXPECT_TRUE(parse_bounded("[1,2,3]", limits).has_value());
  EXPECT_EQ(parse_bounded("[1,2,3,4]", limits).error().code, Code::kUnsupported);
  EXPECT_EQ(parse_bounded(R"({"a":[{},[]],"b":1})", limits).error().code, Code::kUnsupported);
}

TEST(BoundedJson, MemoryIsBoundedAtTheSizeOfABody) {
  std::string messages = "[";
  while (messages.size() + 64 < kHttpLimits.http_body_bytes_max) {
    messages += R"({"role":"user","content":"x"},)";
  }
  messages += "0]";
  const auto many = parse_bounded(messages);
  ASSERT_FALSE(many.has_value());
  EXPECT_EQ(many.error().code, Code::kUnsupported);
  EXPECT_TRUE(many.error().message.contains("128 MB of memory")) << many.error().message;
  const std::string picture = '"' + std::string(kHttpLimits.http_body_bytes_max - 2, 'x') + '"';
  EXPECT_TRUE(parse_bounded(picture).has_value());
  std::string tokens = "[";
  for (int i = 0; i < 4'000'000; ++i) tokens += "100,";
  EXPECT_TRUE(parse_bounded(tokens + "0]").has_value());
}

// ordered_json's own parser takes 6.7 s for 60,000 names.
TEST(BoundedJson, ABodyOfNothingButNamesTakesLinearTime) {
  std::string text = "{";
  text.reserve(kHttpLimits.http_body_bytes_max);
  for (std::size_t i = 0; text.size() + 32 < kHttpLimits.http_body_bytes_max / 4; ++i) {
    text += format_text("{}\"{}\":0", i == 0 ? "" : ",", i);
  }
  text += "}";
  const std::clock_t start = std::clock();
  const auto read = parse_bounded(text);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_GT(read->size(), 500'000U);
  EXPECT_LT((std::clock() - start) / CLOCKS_PER_SEC, 10);
}

TEST(BoundedJson, ManyTinyValuesAreRefused) {
  const auto list_of = [](std::string_view value) {
    std::string text = "[";
    while (text.size() < std::size_t{2} << 20) text += format_text("{},", value);
    return text + "0]";
  };
  for (const std::string_view dense : {"\"x\"", "{}", "[]", "[0]"}) {
    const auto read = parse_bounded(list_of(dense));
    ASSERT_FALSE(read.has_value()) << dense;
    EXPECT_EQ(read.error().code, Code::kUnsupported);
  }
  // The densest JSON that clients send.
  for (const std::string_view usual :
       {"0", "1234", R"({"role":"user","content":"x"})", R"({"type":"text","text":"x"})",
        R"({"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}})"}) {
    EXPECT_TRUE(parse_bounded(list_of(usual)).has_value()) << usual;
  }
  EXPECT_TRUE(parse_bounded(R"(["x","x","x"])").has_value());
}

TEST(BoundedJson, ValuesAreCountedAndDestroyed) {
  Json json = *parse_bounded(R"({"a": [1, {"b": []}], "c": "d"})");
  EXPECT_EQ(n_values(json), 6);
  destroy(json);
  EXPECT_EQ(json, Json::object());
}

}  // namespace
}  // namespace slipstream
