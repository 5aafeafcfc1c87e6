#include "engine/sampling/grammar.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "engine/sampling/grammar_limits.h"

namespace slipstream {
namespace {

Result<Grammar> parse(std::string_view text) {
  return Grammar::parse(text, 100, [](std::string_view name) -> std::optional<Token> {
    if (name == "<|im_end|>") return 7;
    return std::nullopt;
  });
}

std::string error_of(std::string_view text) {
  const Result<Grammar> grammar = parse(text);
  return grammar ? "none" : grammar.error().message;
}

TEST(Grammar, ReadsTheWholeLanguage) {
  EXPECT_EQ(error_of(R"(# a comment
root   ::= answer ("," answer){0,3}   # another
answer ::= "yes" | "no\n\x41\u00e9\U0001F600" |
           [0-9a-f\]\[-] | [^"\\] | .
         | <|im_end|> | !<[42]> | "" | (
             "a" # inside
             "b")+ ("c" | )? "d"{2} "e"{2,} "f"{ 0 , 2 }
)"),
            "grammar, line 5: expected a name")
      << "a line ends its rule unless something is open";
  EXPECT_EQ(error_of(R"(root ::= answer ("," answer){0,3}   # another
answer ::= "yes" | "no\n\x41\u00e9\U0001F600" |
           [0-9a-f\]\[-] | [^"\\] | . |
           <|im_end|> | !<[42]> | "" | (
             "a" # inside
             "b")+ ("c" | )? "d"{2} "e"{2,} "f"{ 0 , 2 }
)"),
            "none");
  EXPECT_EQ(error_of("root ::="), "none") << "the empty answer";
}

TEST(Grammar, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of(""), "grammar: no rule \"root\"");
  EXPECT_EQ(error_of("a ::= \"x\""), "grammar: no rule \"root\"");
  EXPECT_EQ(error_of("root ::= a"), "grammar: rule \"a\" is used but not defined");
  EXPECT_EQ(error_of("root = \"x\""), "grammar, line 1: expected ::= after the name of a rule");
  EXPECT_EQ(error_of("root ::= \"x\"\n\na ::= \"open"),
            "grammar, line 3: expected '\"' before the end");
  EXPECT_EQ(error_of("root ::= [a-"), "grammar, line 1: expected ']' before the end");
  EXPECT_EQ(error_of("root ::= (\"a\""), "grammar, line 1: expected ')'");
  EXPECT_EQ(error_of("root ::= \"a\")"), "grammar, line 1: expected the end of the line");
  EXPECT_EQ(error_of("root ::= *"), "grammar, line 1: nothing to repeat");
  EXPECT_EQ(error_of("root ::= \"\"*"), "grammar, line 1: nothing to repeat");
  EXPECT_EQ(error_of("root ::= \"a\"{,2}"), "grammar, line 1: expected a number");
  EXPECT_EQ(error_of("root ::= \"a\"{5,2}"),
            "grammar, line 1: a repetition of at least more than at most");
  EXPECT_EQ(error_of("root ::= []"), "grammar, line 1: an empty class of characters");
  EXPECT_EQ(error_of("root ::= [z-a]"),
            "grammar, line 1: a range of characters ends before it begins");
  EXPECT_EQ(error_of("root ::= \"\\q\""), "grammar, line 1: an unknown escape after \\");
  EXPECT_EQ(error_of("root ::= \"\\x4\""), "grammar, line 1: expected 2 hexadecimal digits");
  EXPECT_EQ(error_of("root ::= \"\\U00110000\""), "grammar, line 1: a character past U+10FFFF");
  EXPECT_EQ(error_of("root ::= \"\xFF\""), "grammar, line 1: not UTF-8");
  EXPECT_EQ(error_of(std::string_view("root ::= \0", 10)),
            "grammar, line 1: expected the end of the line");
  EXPECT_EQ(error_of("root ::= <[100]>"), "grammar, line 1: no such token in the vocabulary");
  EXPECT_EQ(error_of("root ::= <nothing>"),
            "grammar, line 1: what stands in <> is not one token of the vocabulary");
  EXPECT_EQ(error_of("root ::= !x"), "grammar, line 1: expected '<'");
}

TEST(Grammar, RefusesLeftRecursion) {
  EXPECT_EQ(error_of("root ::= root \"a\" | \"a\""),
            "grammar: rule \"root\" can begin with itself (left recursion)");
  EXPECT_EQ(error_of("root ::= \"x\" a\na ::= b \"a\"\nb ::= a | \"b\""),
            "grammar: rule \"a\" can begin with itself (left recursion)");
  // Hidden behind a rule that may be empty, here indirectly. libllama fills all memory with this.
  EXPECT_EQ(error_of("root ::= a root \"z\" | \"y\"\na ::= b\nb ::= \"x\" |"),
            "grammar: rule \"root\" can begin with itself (left recursion)");
  EXPECT_EQ(error_of("root ::= \"a\" root | \"a\""), "none") << "right recursion";
  EXPECT_EQ(error_of("root ::= ws (ws)* (\"a\"?)*\nws ::= [ ]*"), "none")
      << "a repetition of what may be empty comes to an end";
}

TEST(Grammar, RefusesWhatIsTooLarge) {
  const auto nested = [](std::size_t depth) {
    return "root ::= " + std::string(depth, '(') + "\"a\"" + std::string(depth, ')');
  };
  EXPECT_EQ(error_of(nested(kGrammarLimits.grammar_nesting_max)), "none");
  EXPECT_EQ(error_of(nested(kGrammarLimits.grammar_nesting_max + 1)),
            "grammar, line 1: more than 128 nested parentheses");
  EXPECT_EQ(error_of(nested(100'000)), "grammar, line 1: more than 128 nested parentheses");
  EXPECT_EQ(error_of(std::string(kGrammarLimits.grammar_bytes_max + 1, ' ')),
            "a grammar of 262145 bytes is longer than the 262144 allowed");
  constexpr std::string_view kTooMany =
      "grammar, line 1: more than 262144 symbols, repetitions counted";
  EXPECT_EQ(error_of("root ::= \"a\"{999999999}"), kTooMany);
  EXPECT_EQ(error_of("root ::= \"a\"{0,999999999}"), kTooMany);
  EXPECT_EQ(error_of("root ::= ((\"ab\"{1000}){1000}){1000}"), "none") << "a rule is not copied";
  EXPECT_EQ(error_of("root ::= \"a\"{1000}{1000}"), "none");
}

// Each rule begins with the next: a recursive search would overflow the stack on the first grammar
// and take 2^n steps on the second.
TEST(Grammar, ChecksLongChainsInLinearTime) {
  const auto next = [](int i) { return format_text("r{}", i + 1); };
  std::string simple = "root ::= r0\n";
  std::string twice = "root ::= r0\n";
  for (int i = 0; i < 10'000; ++i) {
    simple += format_text("r{} ::= {}\n", i, next(i));
    if (i < 5'000) twice += format_text("r{} ::= {} | {}\n", i, next(i), next(i));
  }
  EXPECT_EQ(error_of(simple + "r10000 ::= \"a\""), "none");
  EXPECT_EQ(error_of(twice + "r5000 ::= \"a\""), "none");
}

TEST(CharClass, IsASetOfCodePoints) {
  const CharClass hex({{'a', 'f'}, {'0', '9'}, {'A', 'F'}, {'c', 'h'}}, false);
  EXPECT_TRUE(hex.contains('0') && hex.contains('9') && hex.contains('h'));
  EXPECT_FALSE(hex.contains('i') || hex.contains('/') || hex.contains(0x20AC));
  EXPECT_TRUE(hex.overlaps({'9', 'A'}));
  EXPECT_FALSE(hex.overlaps({':', '@'}));
  const CharClass others({{'b', 'b'}, {0x20AC, 0x10FFFF}}, true);
  EXPECT_TRUE(others.contains(0) && others.contains('a') && others.contains(0x20AB));
  EXPECT_FALSE(others.contains('b') || others.contains(0x20AC));
  EXPECT_TRUE(CharClass({}, true).contains(0x10FFFF));
}

}  // namespace
}  // namespace slipstream
