#include "engine/sampling/gbnf_parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"
#include "engine/sampling/grammar_limits.h"

namespace slipstream {
namespace {

using Kind = GrammarSymbol::Kind;
using Sequence = GrammarRules::Sequence;
constexpr char32_t kCodePointMax = 0x10FFFF;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

// Recursive descent. After the first error the rest of the text is dropped, so that every loop and
// every level ends by itself.
class GbnfParser {
 public:
  GbnfParser(std::string_view text, int n_tokens, const TokenOfName& token_of_name)
      : text_(text), n_tokens_(n_tokens), token_of_name_(token_of_name) {}

  Result<GrammarRules> run() {
    skip_space(true);
    while (!at_end()) parse_rule();
    if (error_) return std::unexpected(*error_);
    const auto root = rule_of_name_.find("root");
    if (root == rule_of_name_.end())
      return fail(Code::kInvalidArgument, "grammar: no rule \"root\"");
    grammar_.root = root->second;
    return std::move(grammar_);
  }

 private:
  struct Scope {
    std::string_view rule_name;
    std::size_t depth;  // of parentheses
  };

  bool at_end() const { return pos_ == text_.size(); }
  bool at(char c) const { return !at_end() && text_[pos_] == c; }
  bool at_name() const { return !at_end() && is_name_char(text_[pos_]); }
  bool take(char c) {
    const bool there = at(c);
    if (there) ++pos_;
    return there;
  }

  void fail_here(const std::string& message) {
    if (error_) return;
    const auto line = 1 + std::ranges::count(text_.substr(0, pos_), '\n');
    error_ = Error{Code::kInvalidArgument, format_text("grammar, line {}: {}", line, message)};
    pos_ = text_.size();
  }
  void expect(char c) {
    if (!take(c)) fail_here(format_text("expected '{}'", c));
  }

  void skip_space(bool newlines) {
    while (!at_end()) {
      const char c = text_[pos_];
      if (c == '#') {
        pos_ = std::min(text_.find_first_of("\r\n", pos_), text_.size());
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\r' || c == '\n'))) {
        ++pos_;
      } else {
        return;
      }
    }
  }

  std::string_view take_name() {
    const std::size_t start = pos_;
    while (at_name()) ++pos_;
    if (pos_ == start) fail_here("expected a name");
    return text_.substr(start, pos_ - start);
  }

  std::uint32_t take_number() {
    constexpr std::size_t kDigitsMax = 9;
    const std::size_t start = pos_;
    std::uint32_t number = 0;
    while (!at_end() && text_[pos_] >= '0' && text_[pos_] <= '9' && pos_ - start < kDigitsMax) {
      number = number * 10 + static_cast<std::uint32_t>(text_[pos_++] - '0');
    }
    if (pos_ == start) fail_here("expected a number");
    return number;
  }

  char32_t take_hex(std::size_t n_digits) {
    char32_t code_point = 0;
    for (std::size_t i = 0; i < n_digits; ++i) {
      constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
      const std::size_t digit = at_end() ? kDigits.npos : kDigits.find(text_[pos_]);
      if (digit == kDigits.npos) {
        fail_here(format_text("expected {} hexadecimal digits", n_digits));
        return 0;
      }
      code_point = (code_point << 4) | (digit % 16);
      ++pos_;
    }
    if (code_point > kCodePointMax) fail_here("a character past U+10FFFF");
    return code_point;
  }

  char32_t take_escaped() {
    if (at_end()) {
      fail_here("the text ends after a \\");
      return 0;
    }
    const char c = text_[pos_++];
    switch (c) {
      case 'x': return take_hex(2);
      case 'u': return take_hex(4);
      case 'U': return take_hex(8);
      case 't': return '\t';
      case 'r': return '\r';
      case 'n': return '\n';
      case '\\':
      case '"':
      case '[':
      case ']': return static_cast<unsigned char>(c);
      default: break;
    }
    fail_here("an unknown escape after \\");
    return 0;
  }

  // The next character of a literal or class that `end` closes.
  char32_t take_char(char end) {
    if (take('\\')) return take_escaped();
    if (at_end()) {
      fail_here(format_text("expected '{}' before the end", end));
      return 0;
    }
    const Utf8Char character = decode_utf8(text_.substr(pos_));
    if (character.kind != Utf8Char::Kind::kValid) {
      fail_here("not UTF-8");
      return 0;
    }
    pos_ += character.n_bytes;
    return character.code_point;
  }

  std::uint32_t add_rule(std::string_view name, std::vector<Sequence> alternatives) {
    // The end of an alternative is a symbol too.
    count_symbols(alternatives.size());
    grammar_.rules.push_back({name, true, std::move(alternatives)});
    return static_cast<std::uint32_t>(grammar_.rules.size() - 1);
  }

  std::uint32_t rule_of_name(std::string_view name) {
    const auto next = static_cast<std::uint32_t>(grammar_.rules.size());
    const auto [found, is_new] = rule_of_name_.emplace(name, next);
    if (is_new) grammar_.rules.push_back({.name = name});
    return found->second;
  }

  void count_symbols(std::size_t n) {
    n_symbols_ += n;
    if (n_symbols_ > kGrammarLimits.grammar_symbols_max) {
      fail_here(format_text("more than {} symbols, repetitions counted",
                            kGrammarLimits.grammar_symbols_max));
    }
  }

  void add(Sequence& sequence, Kind kind, std::uint32_t value) {
    count_symbols(1);
    sequence.push_back({kind, value});
  }

  void parse_rule() {
    const std::string_view name = take_name();
    const std::uint32_t rule = rule_of_name(name);
    skip_space(false);
    if (!text_.substr(pos_).starts_with("::=")) {
      fail_here("expected ::= after the name of a rule");
      return;
    }
    pos_ += 3;
    skip_space(true);
    std::vector<Sequence> alternatives = parse_alternatives({name, 0});
    if (!at_end() && !at('\r') && !at('\n')) fail_here("expected the end of the line");
    count_symbols(alternatives.size());
    // As in libllama: the last of two definitions counts.
    grammar_.rules[rule].alternatives = std::move(alternatives);
    grammar_.rules[rule].defined = true;
    skip_space(true);
  }

  std::vector<Sequence> parse_alternatives(const Scope& scope) {
    std::vector<Sequence> alternatives;
    alternatives.push_back(parse_sequence(scope));
    while (take('|')) {
      skip_space(true);
      alternatives.push_back(parse_sequence(scope));
    }
    return alternatives;
  }

  Sequence parse_sequence(const Scope& scope) {
    Sequence sequence;
    std::size_t item = 0;  // where the last item begins, which a repetition repeats
    while (!at_end()) {
      const std::size_t end = sequence.size();
      if (parse_item(sequence, scope)) {
        item = end;
      } else if (!parse_repetition(sequence, item, scope)) {
        break;
      }
      skip_space(scope.depth > 0);
    }
    return sequence;
  }

  bool parse_item(Sequence& sequence, const Scope& scope) {
    if (at_name()) {
      add(sequence, Kind::kRule, rule_of_name(take_name()));
    } else if (take('"')) {
      while (!take('"') && !error_) add(sequence, Kind::kChar, take_char('"'));
    } else if (take('[')) {
      parse_class(sequence);
    } else if (take('.')) {
      if (!any_char_) any_char_ = add_class(CharClass({}, true));
      add(sequence, Kind::kClass, *any_char_);
    } else if (take('(')) {
      parse_group(sequence, scope);
    } else if (at('<') || at('!')) {
      const Kind kind = take('!') ? Kind::kNotToken : Kind::kToken;
      add(sequence, kind, parse_token());
    } else {
      return false;
    }
    return true;
  }

  void parse_group(Sequence& sequence, const Scope& scope) {
    if (scope.depth == kGrammarLimits.grammar_nesting_max) {
      fail_here(format_text("more than {} nested parentheses", kGrammarLimits.grammar_nesting_max));
      return;
    }
    skip_space(true);
    std::vector<Sequence> alternatives = parse_alternatives({scope.rule_name, scope.depth + 1});
    expect(')');
    add(sequence, Kind::kRule, add_rule(scope.rule_name, std::move(alternatives)));
  }

  void parse_class(Sequence& sequence) {
    const bool negated = take('^');
    std::vector<CharClass::Range> ranges;
    while (!take(']') && !error_) {
      const char32_t first = take_char(']');
      char32_t last = first;
      const bool is_range = at('-') && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']';
      if (is_range) {
        ++pos_;
        last = take_char(']');
      }
      if (last < first) fail_here("a range of characters ends before it begins");
      ranges.push_back({first, last});
      count_symbols(1);
    }
    if (ranges.empty()) fail_here("an empty class of characters");
    if (error_) return;
    add(sequence, Kind::kClass, add_class(CharClass(std::move(ranges), negated)));
  }

  std::uint32_t add_class(CharClass char_class) {
    grammar_.classes.push_back(std::move(char_class));
    return static_cast<std::uint32_t>(grammar_.classes.size() - 1);
  }

  // <[42]> or <name>. The name with its brackets is the token's name in the vocabulary.
  std::uint32_t parse_token() {
    const std::size_t start = pos_;
    expect('<');
    if (take('[')) {
      const std::uint32_t token = take_number();
      expect(']');
      expect('>');
      if (std::cmp_greater_equal(token, n_tokens_)) fail_here("no such token in the vocabulary");
      return token;
    }
    pos_ = std::min(text_.find('>', pos_), text_.size());
    expect('>');
    if (error_) return 0;
    const std::string_view name = text_.substr(start, pos_ - start);
    const std::optional<Token> token = token_of_name_(name);
    if (!token) fail_here("what stands in <> is not one token of the vocabulary");
    return static_cast<std::uint32_t>(token.value_or(0));
  }

  bool parse_repetition(Sequence& sequence, std::size_t item, const Scope& scope) {
    std::uint32_t n_min = 0;
    std::optional<std::uint32_t> n_max;
    if (take('*')) {
      n_min = 0;
    } else if (take('+')) {
      n_min = 1;
    } else if (take('?')) {
      n_max = 1;
    } else if (take('{')) {
      const bool spans_lines = scope.depth > 0;
      skip_space(spans_lines);
      n_min = take_number();
      skip_space(spans_lines);
      n_max = n_min;
      if (take(',')) {
        skip_space(spans_lines);
        n_max = at('}') ? std::nullopt : std::optional(take_number());
        skip_space(spans_lines);
      }
      expect('}');
    } else {
      return false;
    }
    if (sequence.size() == item) fail_here("nothing to repeat");
    if (n_max && *n_max < n_min) fail_here("a repetition of at least more than at most");
    if (!error_) repeat(sequence, item, n_min, n_max, scope);
    return true;
  }

  // Rewrites the item S at the end of the sequence:
  //   S{2,}  ->  S S L    L ::= S L |
  //   S{2,4} ->  S S A    A ::= S B |    B ::= S |
  void repeat(Sequence& sequence, std::size_t item, std::uint32_t n_min,
              std::optional<std::uint32_t> n_max, const Scope& scope) {
    GrammarSymbol repeated = sequence[item];
    if (sequence.size() - item > 1) {
      const auto first = sequence.begin() + static_cast<std::ptrdiff_t>(item);
      repeated = {Kind::kRule, add_rule(scope.rule_name, {Sequence(first, sequence.end())})};
    }
    sequence.resize(item);
    // Counted before they are created: a repetition count of a billion is easily written.
    const std::size_t n_optional = n_max ? *n_max - n_min : 1;
    count_symbols(n_min + 2 * n_optional);
    if (error_) return;
    sequence.insert(sequence.end(), n_min, repeated);
    std::optional<GrammarSymbol> rest;
    for (std::size_t i = 0; i < n_optional; ++i) {
      const std::uint32_t rule = add_rule(scope.rule_name, {{repeated}, {}});
      if (!n_max) rest = GrammarSymbol{Kind::kRule, rule};
      if (rest) grammar_.rules[rule].alternatives[0].push_back(*rest);
      rest = GrammarSymbol{Kind::kRule, rule};
    }
    if (rest) sequence.push_back(*rest);
  }

  std::string_view text_;
  int n_tokens_;
  const TokenOfName& token_of_name_;
  std::size_t pos_ = 0;
  std::size_t n_symbols_ = 0;
  std::optional<Error> error_;
  GrammarRules grammar_;
  std::unordered_map<std::string_view, std::uint32_t> rule_of_name_;
  std::optional<std::uint32_t> any_char_;  // the class of `.`
};

}  // namespace

Result<GrammarRules> parse_gbnf(std::string_view text, int n_tokens,
                                const TokenOfName& token_of_name) {
  if (text.size() > kGrammarLimits.grammar_bytes_max) {
    return fail(Code::kInvalidArgument,
                format_text("a grammar of {} bytes is longer than the {} allowed", text.size(),
                            kGrammarLimits.grammar_bytes_max));
  }
  return GbnfParser(text, n_tokens, token_of_name).run();
}

}  // namespace slipstream
