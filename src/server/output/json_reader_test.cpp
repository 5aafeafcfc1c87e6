#include "server/output/json_reader.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/output/output_limits.h"

namespace slipstream {
namespace {

std::string read(std::string_view text) {
  std::string out;
  return append_json_value(text, out) ? out : "failed";
}

TEST(JsonReader, KeepsWhatIsRight) {
  for (const char* text :
       {"{}", "[]", "null", "-1.5e+3", "{\"a\": [1, {\"b\": null}], \"c\":\"\\u00e9\\n\"}",
        "[true,\n false]", "\"\\ud83d\\ude00\"", "[[], {}]"}) {
    EXPECT_EQ(read(text), text);
  }
}

TEST(JsonReader, RepairsWhatCanMeanOnlyOneThing) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{'a': True, 'b': [False, None]}", R"({"a": true, "b": [false, null]})"},
      {"{a: 1, b_2: 'x\"y'}", R"({"a": 1, "b_2": "x\"y"})"},
      {"{\"a\": 1, }", R"({"a": 1 })"},
      {"[1, 2, ]", "[1, 2 ]"},
      {"\"two\nlines\"", R"("two\nlines")"},
      {R"("\d+ \'")", R"("\\d+ '")"},
      {R"("\ud83d!")", R"("\ufffd!")"},
      {R"("\ude00")", R"("\ufffd")"},
      {R"("\u12 ")", R"("\\u12 ")"},
      {"+1", "1"},
      {".5", "0.5"},
      {"5.", "5.0"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(read(text), expected) << text;
}

TEST(JsonReader, FailsWhereItIsUnclear) {
  for (const char* text : {"", "{", "hello", "007", "1e999", "-", "{\"a\" 1}", "{1: 2}", "[1 2]",
                           "{} {}", "[,]", "NaN", "{\"a\": 1]"}) {
    EXPECT_EQ(read(text), "failed") << text;
  }
}

TEST(JsonReader, CompletesAnyPrefixToAValue) {
  const std::string text =
      R"({"a": [1.5, "x\n\ud83d\ude00", {"b": true}], 'c': None, d: {"e": [[], -2e3]}})";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    JsonReader reader;
    std::string out;
    auto step = JsonReader::Step::kTaken;
    for (std::size_t i = 0; i < n; ++i) step = reader.push(text[i], out);
    if (step == JsonReader::Step::kTaken) reader.complete(out);
    EXPECT_TRUE(nlohmann::json::accept(out)) << text.substr(0, n) << " -> " << out;
  }
}

TEST(JsonReader, ReadsGemmasQuotes) {
  JsonReader reader(JsonReader::Quotes::kGemma);
  std::string out;
  auto step = JsonReader::Step::kTaken;
  const std::string text = "{a:<|\"|>say \"<|\" \\ now<|\"|>,b:[1,true],<|\"|>c d<|\"|>:{}}";
  for (const char byte : text) step = reader.push(byte, out);
  EXPECT_EQ(step, JsonReader::Step::kDone);
  EXPECT_EQ(out, R"({"a":"say \"<|\" \\ now","b":[1,true],"c d":{}})");
}

TEST(JsonReader, RefusesDeepNesting) {
  EXPECT_EQ(read(std::string(kOutputLimits.call_nesting_max + 1, '[')), "failed");
  std::string nested(kOutputLimits.call_nesting_max, '[');
  nested.append(kOutputLimits.call_nesting_max, ']');
  EXPECT_EQ(read(nested), nested);
}

TEST(JsonReader, UnescapesWhatItWrites) {
  EXPECT_EQ(json_unescaped(R"(a\"\\\/\n\u00e9\ud83d\ude00)"), "a\"\\/\né😀");
}

}  // namespace
}  // namespace slipstream
