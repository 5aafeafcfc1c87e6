#include "engine/sampling/grammar_matcher.h"

#include <gtest/gtest.h>
#include <llama-cpp.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/format.h"
#include "base/utf8.h"
#include "engine/sampling/test_model.h"

namespace slipstream {
namespace {

// A vocabulary of single bytes and some words; token 0 ends answers.
class Words {
 public:
  explicit Words(std::vector<std::string> words) : pieces_({}, {}) {
    std::vector<std::string> all = {"<end>", ""};
    for (int byte = 1; byte < 256; ++byte) all.emplace_back(1, static_cast<char>(byte));
    all.insert(all.end(), words.begin(), words.end());
    pieces_ = TokenPieces(all, {0});
  }

  [[nodiscard]] const TokenPieces& pieces() const { return pieces_; }
  [[nodiscard]] Token token(std::string_view piece) const {
    for (std::size_t i = 0; i < pieces_.n_tokens(); ++i) {
      if (pieces_.piece(static_cast<Token>(i)) == piece) return static_cast<Token>(i);
    }
    ADD_FAILURE() << "no token " << piece;
    return 0;
  }

 private:
  TokenPieces pieces_;
};

GrammarMatcher matcher_of(std::string_view text, const Words& words) {
  Result<Grammar> grammar =
      Grammar::parse(text, static_cast<int>(words.pieces().n_tokens()),
                     [&words](std::string_view name) { return std::optional(words.token(name)); });
  EXPECT_TRUE(grammar.has_value()) << grammar.error().message;
  Result<GrammarMatcher> matcher = GrammarMatcher::create(std::move(*grammar));
  EXPECT_TRUE(matcher.has_value());
  return std::move(*matcher);
}

// Whether the grammar allows the text, byte by byte, and may end after it.
bool matches(std::string_view grammar, std::string_view text) {
  const Words words({});
  GrammarMatcher matcher = matcher_of(grammar, words);
  for (const char byte : text) {
    if (!*matcher.accept(words.token(std::string_view(&byte, 1)), words.pieces())) return false;
  }
  return *matcher.accept(0, words.pieces());
}

std::set<std::string> allowed_by(GrammarMatcher& matcher, const Words& words) {
  std::vector<bool> allowed;
  EXPECT_TRUE(matcher.find_allowed(words.pieces(), allowed).has_value());
  std::set<std::string> texts;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (allowed[i]) texts.emplace(words.pieces().piece(static_cast<Token>(i)));
  }
  return texts;
}

TEST(GrammarMatcher, MatchesWhatTheGrammarSays) {
  EXPECT_TRUE(matches(R"(root ::= "yes" | "no")", "yes"));
  EXPECT_TRUE(matches(R"(root ::= "yes" | "no")", "no"));
  EXPECT_FALSE(matches(R"(root ::= "yes" | "no")", "ye")) << "not yet at its end";
  EXPECT_FALSE(matches(R"(root ::= "yes" | "no")", "yesno"));
  EXPECT_TRUE(matches("root ::=", ""));
  EXPECT_FALSE(matches("root ::=", "a"));
  for (const auto& [text, expected] :
       std::vector<std::pair<std::string, bool>>{{"ab", false},
                                                 {"abab", true},
                                                 {"ababab", true},
                                                 {"abababab", true},
                                                 {"ababababab", false}}) {
    EXPECT_EQ(matches(R"(root ::= "ab"{2,4})", text), expected) << text;
  }
  EXPECT_TRUE(matches(R"(root ::= "a"* "b"+ "c"?)", "aabbc"));
  EXPECT_FALSE(matches(R"(root ::= "a"* "b"+ "c"?)", "aac"));
  EXPECT_TRUE(matches("root ::= \"(\" root \")\" root |", "(()())()"));
  EXPECT_FALSE(matches("root ::= \"(\" root \")\" root |", "(()"));
  EXPECT_TRUE(matches("root ::= ws (ws)* (\"a\"?)* \"b\"\nws ::= [ ]*", "  aab"));
}

TEST(GrammarMatcher, MatchesCharactersNotBytes) {
  EXPECT_TRUE(matches("root ::= [à-ÿ]+ \"€\" . .", "é€😀\n"));
  EXPECT_FALSE(matches("root ::= .", "éé"));
  EXPECT_FALSE(matches("root ::= .", "\xC3")) << "inside a character nothing ends";
  EXPECT_FALSE(matches("root ::= .", "\xC0\xAF")) << "overlong";
  EXPECT_FALSE(matches("root ::= .", "\xED\xA0\x80")) << "a surrogate";
  const Words words({});
  GrammarMatcher matcher = matcher_of("root ::= [é-ê] | \"😀\"", words);
  EXPECT_EQ(allowed_by(matcher, words), (std::set<std::string>{"\xC3", "\xF0"}));
  EXPECT_TRUE(*matcher.accept(words.token("\xC3"), words.pieces()));
  EXPECT_EQ(allowed_by(matcher, words), (std::set<std::string>{"\xA9", "\xAA"}));
}

TEST(GrammarMatcher, TokensMayReachAcrossRules) {
  const Words words({"yes", "yesterday", "no", "no.", ".", "es."});
  GrammarMatcher matcher = matcher_of("root ::= word \".\"\nword ::= \"yes\" | \"no\"", words);
  EXPECT_EQ(allowed_by(matcher, words), (std::set<std::string>{"n", "no", "no.", "y", "yes"}));
  EXPECT_FALSE(*matcher.accept(words.token("yesterday"), words.pieces()));
  EXPECT_TRUE(*matcher.accept(words.token("y"), words.pieces())) << "a refusal changes nothing";
  EXPECT_EQ(allowed_by(matcher, words), (std::set<std::string>{"e", "es."}));
  EXPECT_TRUE(*matcher.accept(words.token("es."), words.pieces()));
  EXPECT_EQ(allowed_by(matcher, words), std::set<std::string>{"<end>"});
}

TEST(GrammarMatcher, TokensCanBeNamed) {
  const Words words({"<tool>", "\xE2\x82", "abc"});
  GrammarMatcher matcher = matcher_of(R"(root ::= !<tool>* <tool> "abc" | "x")", words);
  const std::size_t n_texts = words.pieces().sorted().size();
  EXPECT_EQ(allowed_by(matcher, words).size(), n_texts) << "all, one by its name";
  // A token that is only part of a character is accepted by its id.
  EXPECT_TRUE(*matcher.accept(words.token("\xE2\x82"), words.pieces()));
  EXPECT_TRUE(*matcher.accept(words.token("<tool>"), words.pieces()));
  EXPECT_EQ(allowed_by(matcher, words), (std::set<std::string>{"a", "abc"}));
  EXPECT_FALSE(*matcher.accept(words.token("<tool>"), words.pieces()));
}

// "Any token but this" is any text but this: what may be chosen and what is accepted are the same.
TEST(GrammarMatcher, AcceptsTheTokensThatItAllows) {
  const Words words({"<a>", "<b>"});
  for (const char* text : {"root ::= !<a>", "root ::= !<a> | !<b>", "root ::= !<[1]> | !<a>",
                           "root ::= <[1]>", "root ::= !<[0]> \"x\"?"}) {
    GrammarMatcher matcher = matcher_of(text, words);
    std::vector<bool> allowed;
    ASSERT_TRUE(matcher.find_allowed(words.pieces(), allowed).has_value());
    for (std::size_t i = 0; i < allowed.size(); ++i) {
      GrammarMatcher copy = matcher_of(text, words);
      EXPECT_EQ(*copy.accept(static_cast<Token>(i), words.pieces()), allowed[i]) << text << i;
    }
  }
}

TEST(GrammarMatcher, LongAnswersTakeNoMoreMemoryThanTheirDepth) {
  const Words words({});
  GrammarMatcher matcher = matcher_of("root ::= \"[\" root \"]\" root | [a-z] root |", words);
  const auto accept = [&](std::string_view piece) {
    ASSERT_TRUE(*matcher.accept(words.token(piece), words.pieces()));
  };
  for (int i = 0; i < 20'000; ++i) accept("[");  // deeper than recursion could go
  for (int i = 0; i < 20'000; ++i) accept(i % 2 == 0 ? "a" : "b");
  for (int i = 0; i < 20'000; ++i) accept("]");
  EXPECT_TRUE(*matcher.accept(0, words.pieces()));
}

// Grammars on which libllama takes seconds per token, or all memory.
TEST(GrammarMatcher, GivesUpOnTooAmbiguousGrammars) {
  const Words words({"aaaa", "aaaaaaaaaaaaaaaax"});
  const auto run = [&words](std::string_view grammar) -> Result<void> {
    GrammarMatcher matcher = matcher_of(grammar, words);
    std::vector<bool> allowed;
    for (int i = 0; i < 12; ++i) {
      const Result<void> found = matcher.find_allowed(words.pieces(), allowed);
      if (!found) return found;
      const Result<bool> accepted = matcher.accept(words.token("a"), words.pieces());
      if (!accepted) return std::unexpected(accepted.error());
    }
    return {};
  };
  const Result<void> outcome = run(R"(root ::= "a" root "b" | "a" root "c" | "a" root "d" | "x")");
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().message,
            "the grammar is too ambiguous: the ways to read the answer so far are too many");
  EXPECT_TRUE(run("root ::= \"a\"* \"a\"* \"a\"* (\"a\" | [a-c])* .*").has_value())
      << "ways that meet again are one";
  EXPECT_TRUE(run("root ::= ([a]*){0,1999}").has_value());
}

TEST(GrammarMatcher, GivesUpOnGrammarsTooAmbiguousFromTheStart) {
  std::string text = "root ::= r0\n";
  for (int i = 0; i < 40; ++i)
    text += format_text("r{} ::= r{} \"b\" | r{} \"c\"\n", i, i + 1, i + 1);
  Result<Grammar> grammar = Grammar::parse(text + "r40 ::= \"a\"", 1, nullptr);
  ASSERT_TRUE(grammar.has_value());
  EXPECT_EQ(GrammarMatcher::create(std::move(*grammar)).error().code, Code::kInvalidArgument);
}

// Thousands of ways that no byte of the vocabulary continues; each is checked for every byte.
TEST(GrammarMatcher, WaysThatEndAtOnceAreCountedToo) {
  std::vector<std::string> pairs;
  for (int first = 'a'; first <= 'z'; ++first) {
    for (int second = 1; second < 128; ++second) {
      pairs.push_back({static_cast<char>(first), static_cast<char>(second)});
    }
  }
  const Words words(pairs);
  std::string text = "root ::= [a-z] (\"\\x01\"";
  for (int i = 0; i < 20'000; ++i) text += "|\"\\x01\"";
  GrammarMatcher matcher = matcher_of(text + ")", words);
  std::vector<bool> allowed;
  const Result<void> found = matcher.find_allowed(words.pieces(), allowed);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, Code::kInvalidArgument);
}

TEST(GrammarMatcher, ManyExcludedTokensTakeOneLookAtTheVocabulary) {
  const Words words({"<a>", "<b>"});
  GrammarMatcher one = matcher_of("root ::= !<a> | !<a>", words);
  EXPECT_FALSE(allowed_by(one, words).contains("<a>"));
  GrammarMatcher two = matcher_of("root ::= !<a> | !<b>", words);
  EXPECT_EQ(allowed_by(two, words).size(), words.pieces().sorted().size());
}

// Compared with stock libllama: the same tokens are allowed at every step of random answers.

constexpr std::string_view kJson = R"(root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)";

const std::vector<std::string_view> kGrammars = {
    kJson,
    R"(root ::= "yes" | "no")",
    R"(root ::= ("the " | "a ")? [a-z]+ (" " [a-z]+){1,3} ".")",
    R"(root ::= .*)",
    R"(root ::= [^a-z]* "é"+ [à-ÿ€😀]{2,5} .)",
    R"gbnf(root ::= "(" root ")" root | [0-9]*)gbnf",
    R"(root ::= <|im_start|> "user" | !<|im_start|> [a-z]*)",
};

// Whether libllama is a valid reference: it takes a NUL for the end of a piece, accepts much that
// is not UTF-8, and refuses parts of characters where the grammar names tokens.
bool comparable(const std::string& bytes, std::string_view grammar) {
  std::string text;
  const std::size_t n_taken = append_repaired_utf8(text, bytes);
  const bool named_part = grammar.contains('<') && n_taken < bytes.size();
  return bytes.starts_with(text) && !bytes.contains('\0') && !named_part;
}

// Random answers with at most one token per choice.
void compare_with_libllama(const std::string& text, const std::vector<std::uint32_t>& chosen) {
  const Vocabulary& vocabulary = needle_vocabulary();
  const TokenPieces& pieces = vocabulary.pieces();
  Result<Grammar> grammar = Grammar::parse(text, vocabulary.n_tokens(), [&](std::string_view name) {
    return std::optional(vocabulary.tokenize(name, false, true)->at(0));
  });
  RC_ASSERT(grammar.has_value());
  const llama_sampler_ptr stock(llama_sampler_init_grammar(vocabulary.get(), text.c_str(), "root"));
  RC_CLASSIFY(stock == nullptr, "refused by libllama: a repetition of what may be empty");
  if (stock == nullptr) return;
  GrammarMatcher matcher = *GrammarMatcher::create(std::move(*grammar));
  std::vector<bool> allowed;
  std::vector<llama_token_data> candidates(pieces.n_tokens());
  std::string answer;
  std::string rest;  // the end of the answer, inside a character
  for (const std::uint32_t choice : chosen) {
    RC_ASSERT(matcher.find_allowed(pieces, allowed).has_value());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      candidates[i] = {static_cast<Token>(i), 0, 0};
    }
    llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
    llama_sampler_apply(stock.get(), &array);
    std::vector<Token> texts;
    for (const llama_token_data& candidate : candidates) {
      const std::string piece(pieces.piece(candidate.id));
      if (!comparable(rest + piece, text)) continue;
      const bool stock_allows = candidate.logit != -INFINITY;
      if (allowed[static_cast<std::size_t>(candidate.id)] != stock_allows) {
        RC_FAIL(format_text("{}\n\"{}\" then \"{}\": libllama says {}", text, answer, piece,
                            stock_allows));
      }
      if (stock_allows && !pieces.is_end(candidate.id)) texts.push_back(candidate.id);
    }
    if (texts.empty()) break;
    const Token token = texts[choice % texts.size()];
    RC_ASSERT(*matcher.accept(token, pieces));
    llama_sampler_accept(stock.get(), token);
    answer += pieces.piece(token);
    rest += pieces.piece(token);
    std::string characters;
    rest.erase(0, append_repaired_utf8(characters, rest));
  }
}

rc::Gen<std::vector<std::uint32_t>> choices(std::size_t n) {
  return rc::gen::container<std::vector<std::uint32_t>>(n, rc::gen::arbitrary<std::uint32_t>());
}

RC_GTEST_PROP(GrammarMatcher, AllowsWhatLibllamaAllows, ()) {
  compare_with_libllama(std::string(*rc::gen::elementOf(kGrammars)), *choices(12));
}

// Rules use only later rules, so that none begins with itself.
std::string random_alternatives(int rule, int n_rules, int depth) {
  const auto one_of = [](int n) { return *rc::gen::resize(100, rc::gen::inRange(0, n)); };
  std::string text;
  for (int n_alternatives = 1 + one_of(3); n_alternatives > 0; --n_alternatives) {
    for (int n_items = one_of(4); n_items > 0; --n_items) {
      // Counts come last and only for single items: libllama copies what they count.
      constexpr std::string_view kRepetitions[] = {" ",  " ",  " ",    "? ",
                                                   "* ", "+ ", "{2} ", "{1,3} "};
      const int kind = one_of(7);
      if (kind == 0 && depth < 2) {
        text += "(" + random_alternatives(rule, n_rules, depth + 1) + ")";
        text += kRepetitions[one_of(std::size(kRepetitions) - 2)];
      } else if (kind == 1 && rule + 1 < n_rules) {
        text += format_text("r{}", rule + 1 + one_of(n_rules - rule - 1));
        text += kRepetitions[one_of(std::size(kRepetitions) - 2)];
      } else {
        constexpr std::string_view kItems[] = {"\"the\"", "\"é\"", "[a-h]", "[^a-y]", "\" \"", "."};
        text += kItems[one_of(std::size(kItems))];
        text += kRepetitions[one_of(std::size(kRepetitions))];
      }
    }
    if (n_alternatives > 1) text += "| ";
  }
  return text;
}

// A rule uses itself at most once: libllama keeps every way to read the answer separately, and two
// ways out of each of many open brackets would take it too long.
RC_GTEST_PROP(GrammarMatcher, AllowsWhatLibllamaAllowsForAnyGrammar, ()) {
  constexpr int kRules = 3;
  std::string text = "root ::= r0\n";
  for (int rule = 0; rule < kRules; ++rule) {
    text += format_text("r{} ::= ({})", rule, random_alternatives(rule, kRules, 0));
    if (*rc::gen::arbitrary<bool>()) text += format_text(" | \"(\" r{} \")\" [a-h]*", rule);
    text += "\n";
  }
  compare_with_libllama(text, *choices(6));
}

}  // namespace
}  // namespace slipstream
