// pattern and format: regular expressions as automata and in grammars.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/schema/regex_automaton.h"
#include "server/schema/schema_limits.h"
#include "server/schema/schema_matcher.h"
#include "server/schema/schema_to_grammar.h"
#include "server/schema/string_formats.h"

namespace slipstream {
namespace {

using Texts = std::vector<std::string_view>;

Automaton automaton(std::string_view pattern) {
  WorkBudget budget(kSchemaLimits.schema_steps_max);
  Result<Automaton> made = automaton_of_pattern(pattern, budget);
  EXPECT_TRUE(made.has_value()) << pattern << ": " << made.error().message;
  return made.value_or(Automaton::any_text());
}

void expect_texts(std::string_view pattern, const Texts& found, const Texts& not_found) {
  const Automaton texts = automaton(pattern);
  for (const std::string_view text : found) EXPECT_TRUE(texts.contains(text)) << pattern << text;
  for (const std::string_view text : not_found) {
    EXPECT_FALSE(texts.contains(text)) << pattern << " " << text;
  }
}

TEST(SchemaPatterns, AreNotAnchored) {
  expect_texts("b", {"b", "abc", "bb"}, {"", "a"});
  expect_texts("^b", {"b", "bc"}, {"", "ab"});
  expect_texts("b$", {"b", "ab"}, {"", "bc"});
  expect_texts("^b$", {"b"}, {"", "bb", "abc"});
  expect_texts("^a|b$", {"ax", "xb", "a", "b"}, {"xa", "bx"});
  expect_texts("^(a|^b)c$", {"ac", "bc"}, {"abc"});
  expect_texts("a^b", {}, {"ab", "a^b"});
  expect_texts("a$|$^", {"a", ""}, {"b"});
  expect_texts("", {"", "anything"}, {});
  expect_texts("^$", {""}, {"a"});
}

TEST(SchemaPatterns, Repetitions) {
  expect_texts("^a*$", {"", "aaa"}, {"b", "ab"});
  expect_texts("^a+?b??$", {"a", "aab"}, {"", "b"});
  expect_texts("^(ab){2,3}$", {"abab", "ababab"}, {"ab", "abababab", "aba"});
  expect_texts("^a{2,}$", {"aa", "aaaa"}, {"a"});
  expect_texts("^a{0}$", {""}, {"a"});
  expect_texts("^(a*)*$", {"", "aa"}, {"b"});
  expect_texts("^(a|b*)+c$", {"c", "abbac"}, {"d"});
  expect_texts("^(?:(a+)|b){1,2}$", {"a", "ab", "baaa", "bb"}, {"", "bbb"});
}

TEST(SchemaPatterns, Characters) {
  expect_texts("^[a-c\\d_-]+$", {"a-1_", "c"}, {"d", ""});
  expect_texts("^[^a-c]$", {"d", "é", "\n"}, {"a", "dd"});
  expect_texts("^.$", {"a", "😀"}, {"\n", "\r", "\xE2\x80\xA8"});
  expect_texts("^[^]$", {"\n"}, {""});
  expect_texts("^[]$", {}, {"", "a"});
  expect_texts("^\\w\\W\\s\\S\\D$", {"a- ax", "_é\tx!"}, {"aa ax"});
  expect_texts("^\\x41\\u00e9\\u{1F600}\\uD83D\\uDE00$", {"Aé😀😀"}, {"A"});
  expect_texts("^\\.\\/\\-\\$\\\\$", {"./-$\\"}, {"a/-$\\"});
  expect_texts("^[\\w-.]+$", {"a-.b"}, {"a b"});
  expect_texts("^[\\b\\cA\\0]$", {"\b", "\x01", std::string_view("\0", 1)}, {"b", "A", "0"});
  expect_texts("^(?<year>\\d{4})$", {"2026"}, {"226"});
}

TEST(SchemaPatterns, RefusesWhatIsNotRegular) {
  WorkBudget budget(kSchemaLimits.schema_steps_max);
  for (const std::string_view pattern :
       {"(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(a)\\1", "\\bword", "\\B", "\\p{L}", "(?i)a",
        "\\k<a>", "\\q", "(?i:a)", "\\uD83D"}) {
    const Result<Automaton> made = automaton_of_pattern(pattern, budget);
    ASSERT_FALSE(made.has_value()) << pattern;
    EXPECT_EQ(made.error().code, Code::kUnsupported) << pattern;
  }
  for (const std::string_view pattern :
       {"(", ")", "a)", "[a", "*a", "a**", "a{2", "{2}", "a{3,2}", "[b-a]", "\\", "^*", "a}",
        "\\xg1", "\\u{110000}", "\xC3", "(?<n", "a{99999999999}"}) {
    const Result<Automaton> made = automaton_of_pattern(pattern, budget);
    ASSERT_FALSE(made.has_value()) << pattern;
    EXPECT_EQ(made.error().code, Code::kInvalidArgument) << pattern << made.error().message;
  }
}

TEST(SchemaPatterns, AreEscapedInGrammars) {
  const Result<std::string> grammar =
      grammar_of_schema({{"type", "string"}, {"pattern", "^[\"\\\\\\n\\x1f-]+\\]$"}});
  ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
  EXPECT_TRUE(SchemaMatcher::matches(*grammar, R"("\"\\\n\u001f-]")")) << *grammar;
  EXPECT_FALSE(SchemaMatcher::matches(*grammar, R"("]")"));
  EXPECT_FALSE(SchemaMatcher::matches(*grammar, R"(""]")"));
  EXPECT_FALSE(SchemaMatcher::matches(*grammar, "\"\n]\""));
}

void expect_format(std::string_view format, const Texts& valid, const Texts& invalid) {
  ASSERT_TRUE(pattern_of_format(format).has_value()) << format;
  expect_texts(*pattern_of_format(format), valid, invalid);
}

TEST(SchemaFormats, DatesAndTimes) {
  expect_format("date", {"2024-02-29", "2000-02-29", "1999-12-31", "2023-04-30"},
                {"2023-02-29", "1900-02-29", "2023-04-31", "2023-13-01", "2023-1-01", "23-01-01"});
  expect_format("time", {"12:34:56Z", "23:59:59.123+05:30", "00:00:00-23:59"},
                {"24:00:00Z", "12:60:00Z", "12:34:56", "12:34:56+24:00", "12:34Z"});
  expect_format("date-time", {"2024-02-29T12:34:56Z", "2024-02-28T12:34:56.5-01:00"},
                {"2023-02-29T12:34:56Z", "2024-02-29 12:34:56Z", "2024-02-29"});
  expect_format("duration", {"P4Y", "P1Y2M3DT4H5M6S", "PT36H", "P4W", "P1M", "PT1M"},
                {"P", "PT", "P1YT", "1Y", "P1Y2D", "P1W2D", "PT1H2S"});
}

TEST(SchemaFormats, NetworkNames) {
  expect_format("ipv4", {"0.0.0.0", "255.255.255.255", "192.168.1.9"},
                {"256.0.0.0", "1.2.3", "01.2.3.4", "1.2.3.4.5"});
  expect_format("ipv6", {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "fe80::a:b", "1::2:3:4:5:6:7"},
                {":", ":::", "1:2:3:4:5:6:7", "1::2::3", "12345::", "1:2:3:4:5:6:7:8:9", "g::"});
  expect_format("hostname", {"localhost", "www.example.com", "a-b.c1"},
                {"", "-a", "a-", "a..b", ".a", "a_b", "xn--a"});
  expect_format("email", {"a@b.c", "first.last+tag@example.com"},
                {"a", "@b", "a@", "a..b@c", ".a@b", "a@b@c"});
  expect_format("uri", {"https://example.com/a%20b?c=d#e", "mailto:a@b", "urn:x:y", "file:///a"},
                {"//example.com", "a b", "https://a b", "1x:y", "http://[", "x:%zz", "x:a#b#c"});
  expect_format("uuid", {"123e4567-e89b-12d3-a456-426614174000"},
                {"123e4567e89b12d3a456426614174000", "123e4567-e89b-12d3-a456-42661417400g"});
}

TEST(SchemaFormats, BecomeGrammars) {
  for (const std::string_view format : {"date", "time", "date-time", "duration", "email",
                                        "hostname", "ipv4", "ipv6", "uri", "uuid"}) {
    const Result<std::string> grammar = grammar_of_schema({{"type", "string"}, {"format", format}});
    ASSERT_TRUE(grammar.has_value()) << format << grammar.error().message;
    SchemaMatcher matcher(*grammar);
    EXPECT_TRUE(matcher.accept("\"")) << format;
    EXPECT_LT(grammar->size(), 100'000U) << format;
  }
}

}  // namespace
}  // namespace slipstream
