#include "server/schema/regex_parser.h"

#include <string>
#include <utility>

#include "base/format.h"
#include "base/utf8.h"
#include "server/schema/schema_limits.h"

namespace slipstream {
namespace {

using Kind = Regex::Kind;

CodePointSet digits() { return CodePointSet({{'0', '9'}}); }
CodePointSet word_chars() { return CodePointSet({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}); }
// ECMA-262's WhiteSpace and LineTerminator.
CodePointSet spaces() {
  return CodePointSet({{0x09, 0x0D},
                       {' ', ' '},
                       {0xA0, 0xA0},
                       {0x1680, 0x1680},
                       {0x2000, 0x200A},
                       {0x2028, 0x2029},
                       {0x202F, 0x202F},
                       {0x205F, 0x205F},
                       {0x3000, 0x3000},
                       {0xFEFF, 0xFEFF}});
}
CodePointSet line_ends() { return CodePointSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }
CodePointSet just(char32_t c) { return CodePointSet({{c, c}}); }

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_letter(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Recursive descent over code points. The first error is kept and the rest of the text is dropped,
// so that every loop and every level of recursion ends.
class RegexParser {
 public:
  Result<Regex> run(std::string_view pattern) {
    for (std::string_view rest = pattern; !rest.empty();) {
      const Utf8Char character = decode_utf8(rest);
      if (character.kind != Utf8Char::Kind::kValid) {
        return fail(Code::kInvalidArgument, "a pattern that is not UTF-8");
      }
      text_ += character.code_point;
      rest.remove_prefix(character.n_bytes);
    }
    Regex regex = choice(0);
    if (!at_end()) invalid("a ) without (");
    if (error_) return std::unexpected(*error_);
    return regex;
  }

 private:
  bool at_end() const { return pos_ == text_.size(); }
  bool at(char32_t c) const { return !at_end() && text_[pos_] == c; }
  bool take(char32_t c) {
    const bool there = at(c);
    if (there) ++pos_;
    return there;
  }
  bool take(std::u32string_view word) {
    const bool there = std::u32string_view(text_).substr(pos_).starts_with(word);
    if (there) pos_ += word.size();
    return there;
  }

  void stop(Code code, std::string_view message) {
    if (error_) return;
    error_ = Error{code, format_text("character {}: {}", pos_ + 1, message)};
    pos_ = text_.size();
  }
  void invalid(std::string_view message) { stop(Code::kInvalidArgument, message); }
  void unsupported(std::string_view message) { stop(Code::kUnsupported, message); }

  Regex choice(std::size_t depth) {
    Regex all{.kind = Kind::kChoice};
    all.parts.push_back(sequence(depth));
    while (take('|')) all.parts.push_back(sequence(depth));
    return all.parts.size() == 1 ? std::move(all.parts[0]) : all;
  }

  Regex sequence(std::size_t depth) {
    Regex all{.kind = Kind::kSequence};
    while (!at_end() && !at('|') && !at(')')) {
      Regex one = atom(depth);
      const bool is_assertion = one.kind == Kind::kStart || one.kind == Kind::kEnd;
      all.parts.push_back(quantified(std::move(one), is_assertion));
    }
    return all;
  }

  Regex atom(std::size_t depth) {
    if (take('^')) return {.kind = Kind::kStart};
    if (take('$')) return {.kind = Kind::kEnd};
    if (take('.')) return {.kind = Kind::kSet, .set = line_ends().complement()};
    if (take('(')) return group(depth);
    if (take('[')) return {.kind = Kind::kSet, .set = char_class()};
    if (take('\\')) return {.kind = Kind::kSet, .set = escaped(false)};
    if (at('*') || at('+') || at('?') || at('{')) {
      invalid("nothing to repeat");
    } else if (at('}') || at(']')) {
      invalid("a } or ] that closes nothing");
    }
    if (at_end()) return {.kind = Kind::kSequence};
    return {.kind = Kind::kSet, .set = just(text_[pos_++])};
  }

  Regex group(std::size_t depth) {
    if (depth == kSchemaLimits.pattern_nesting_max) {
      invalid(format_text("more than {} nested groups", kSchemaLimits.pattern_nesting_max));
    }
    if (take(U"?<") && !at('=') && !at('!')) {
      while (!at_end() && !take('>')) ++pos_;
    } else if (pos_ > 1 && text_[pos_ - 1] == '<' && text_[pos_ - 2] == '?') {
      unsupported("lookbehind");
    } else if (!take(U"?:") && at('?')) {
      unsupported("lookahead or a modifier");
    }
    Regex inside = choice(depth + 1);
    if (!take(')')) invalid("a ( without )");
    return inside;
  }

  std::uint32_t number() {
    constexpr std::uint32_t kMax = 1'000'000'000;
    std::uint32_t value = 0;
    if (at_end() || !is_digit(text_[pos_])) invalid("expected a number");
    while (!at_end() && is_digit(text_[pos_])) {
      value = value * 10 + static_cast<std::uint32_t>(text_[pos_++] - '0');
      if (value > kMax) invalid("a number of repetitions that is too large");
    }
    return value;
  }

  Regex quantified(Regex one, bool is_assertion) {
    Regex repeat{.kind = Kind::kRepeat};
    if (take('*')) {
      repeat.n_min = 0;
    } else if (take('+')) {
      repeat.n_min = 1;
    } else if (take('?')) {
      repeat.n_max = 1;
    } else if (take('{')) {
      repeat.n_min = number();
      repeat.n_max = repeat.n_min;
      if (take(',')) repeat.n_max = at('}') ? std::nullopt : std::optional(number());
      if (!take('}')) invalid("expected }");
      if (repeat.n_max && *repeat.n_max < repeat.n_min) invalid("at least more than at most");
    } else {
      return one;
    }
    if (is_assertion) invalid("^ or $ repeated");
    (void)take('?');  // a lazy repetition matches the same set of texts
    repeat.parts.push_back(std::move(one));
    return repeat;
  }

  CodePointSet char_class() {
    const bool negated = take('^');
    std::vector<CodePointRange> ranges;
    while (!take(']')) {
      if (at_end()) {
        invalid("a [ without ]");
        return {};
      }
      const CodePointSet first = class_atom();
      const bool is_range = at('-') && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']';
      if (!is_range) {
        ranges.insert(ranges.end(), first.ranges().begin(), first.ranges().end());
        continue;
      }
      ++pos_;
      const CodePointSet last = class_atom();
      if (error_) return {};
      if (is_single(first) && is_single(last)) {
        if (last.ranges()[0].first < first.ranges()[0].first) {
          invalid("a range that ends before it begins");
          return {};
        }
        ranges.push_back({first.ranges()[0].first, last.ranges()[0].last});
        continue;
      }
      // [\w-.] is an error with flag u. Without it (ECMA-262, Annex B) the - stands for itself.
      ranges.push_back({'-', '-'});
      for (const CodePointSet* side : {&first, &last}) {
        ranges.insert(ranges.end(), side->ranges().begin(), side->ranges().end());
      }
    }
    const CodePointSet set(std::move(ranges));
    return negated ? set.complement() : set;
  }

  static bool is_single(const CodePointSet& set) {
    return set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].last;
  }

  CodePointSet class_atom() {
    if (take('\\')) return escaped(true);
    if (at_end()) return {};
    return just(text_[pos_++]);
  }

  CodePointSet escaped(bool in_class) {
    if (at_end()) {
      invalid("a \\ at the end");
      return {};
    }
    const char32_t c = text_[pos_++];
    switch (c) {
      case 'd': return digits();
      case 'D': return digits().complement();
      case 'w': return word_chars();
      case 'W': return word_chars().complement();
      case 's': return spaces();
      case 'S': return spaces().complement();
      case 't': return just('\t');
      case 'n': return just('\n');
      case 'r': return just('\r');
      case 'f': return just('\f');
      case 'v': return just('\v');
      case 'x': return just(hex(2));
      case 'u': return just(unicode());
      case 'c': return just(control());
      case 'p':
      case 'P': unsupported("\\p"); return {};
      case 'k': unsupported("a backreference"); return {};
      case 'b':
        if (in_class) return just('\b');
        unsupported("\\b");
        return {};
      case '0':
        if (at_end() || !is_digit(text_[pos_])) return just(0);
        break;
      default: break;
    }
    if (c >= '1' && c <= '9' && !in_class) {
      unsupported("a backreference");
    } else if (is_digit(c) || is_letter(c)) {
      unsupported(c == 'B' ? "\\B" : "an unknown escape");
    }
    return just(c);
  }

  char32_t hex(std::size_t n_digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < n_digits; ++i) {
      constexpr std::u32string_view kDigits = U"0123456789abcdef0123456789ABCDEF";
      const std::size_t digit = at_end() ? kDigits.npos : kDigits.find(text_[pos_]);
      if (digit == kDigits.npos) {
        invalid(format_text("expected {} hexadecimal digits", n_digits));
        return 0;
      }
      value = (value << 4) | (digit % 16);
      ++pos_;
    }
    return value;
  }

  // \u0041, \uD83D\uDE00 (one character) or \u{1F600}.
  char32_t unicode() {
    if (take('{')) {
      std::size_t n_digits = 0;
      while (pos_ + n_digits < text_.size() && text_[pos_ + n_digits] != '}') ++n_digits;
      const char32_t value = n_digits > 0 && n_digits <= 6 ? hex(n_digits) : 0x110000;
      if (value > 0x10FFFF || !take('}')) invalid("no code point in \\u{}");
      return value;
    }
    const char32_t high = hex(4);
    const bool is_high = high >= 0xD800 && high <= 0xDBFF;
    if (is_high && take(U"\\u")) {
      const char32_t low = hex(4);
      if (low < 0xDC00 || low > 0xDFFF) unsupported("half a surrogate pair");
      return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    if (high >= 0xD800 && high <= 0xDFFF) unsupported("half a surrogate pair");
    return high;
  }

  char32_t control() {
    if (at_end() || !is_letter(text_[pos_])) {
      invalid("expected a letter after \\c");
      return 0;
    }
    return text_[pos_++] % 32;
  }

  std::u32string text_;
  std::size_t pos_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Regex> parse_regex(std::string_view pattern) {
  if (pattern.size() > kSchemaLimits.pattern_bytes_max) {
    return fail(Code::kInvalidArgument,
                format_text("a pattern of {} bytes is longer than the {} allowed", pattern.size(),
                            kSchemaLimits.pattern_bytes_max));
  }
  return RegexParser().run(pattern);
}

}  // namespace slipstream
