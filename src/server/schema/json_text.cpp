#include "server/schema/json_text.h"

#include <array>
#include <string>
#include <utility>

namespace slipstream {
namespace {

constexpr char32_t kControlMax = 0x1F;
constexpr std::string_view kEscapedTag = "u003c";  // follows the \ in the escape of <

struct ShortEscape {
  char32_t character;
  char letter;
};
constexpr std::array<ShortEscape, 7> kShortEscapes = {
    {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};

std::optional<char32_t> short_escape(char32_t character) {
  for (const ShortEscape& escape : kShortEscapes) {
    if (escape.character == character) return static_cast<unsigned char>(escape.letter);
  }
  return std::nullopt;
}

CodePointSet ascii_digits() { return CodePointSet({{'0', '9'}}); }
CodePointSet digits_but_zero() { return CodePointSet({{'1', '9'}}); }

}  // namespace

CodePointSet JsonText::must_be_escaped() const {
  std::vector<CodePointRange> ranges = {{0, kControlMax}, {'"', '"'}, {'\\', '\\'}};
  if (tags_ == Tags::kAround) ranges.push_back({'<', '<'});
  return CodePointSet(std::move(ranges));
}

GbnfItem JsonText::separator(std::optional<RuleId>& rule, std::string_view mark) {
  if (!rule) {
    rule = writer_.add_rule(mark == "," ? "comma" : "colon");
    writer_.add(*rule, {gbnf_literal(mark), repeated(gbnf_literal(" "), 0, 1)});
  }
  return gbnf_rule(*rule);
}

GbnfItem JsonText::string(const CountRange& length) {
  const auto [known, is_new] = strings_.try_emplace(length, 0);
  if (is_new) {
    known->second = writer_.add_rule("string");
    writer_.add(known->second, {gbnf_literal("\""),
                                repeated(gbnf_rule(any_character()), length.n_min, length.n_max),
                                gbnf_literal("\"")});
  }
  return gbnf_rule(known->second);
}

RuleId JsonText::any_character() {
  if (any_character_) return *any_character_;
  const RuleId rule = writer_.add_rule("character");
  for (GbnfSequence& one : character(CodePointSet::all())) writer_.add(rule, std::move(one));
  any_character_ = rule;
  return rule;
}

GbnfItem JsonText::string(const Automaton& texts) {
  const RuleId rule = writer_.add_rule("string");
  const RuleId rest = states(texts, true);
  writer_.add(rule, {gbnf_literal("\""), gbnf_rule(rest)});
  return gbnf_rule(rule);
}

GbnfItem JsonText::number() {
  if (!number_) {
    constexpr std::size_t kDigitsMax = NumberRange::kDigitsMax;
    number_ = writer_.add_rule("number");
    const RuleId whole = writer_.add_rule("whole");
    writer_.add(whole, {gbnf_literal("0")});
    writer_.add(whole, {gbnf_class(digits_but_zero()),
                        repeated(gbnf_class(ascii_digits()), 0, kDigitsMax - 1)});
    const RuleId fraction = writer_.add_rule("fraction");
    writer_.add(fraction, {gbnf_literal("."), repeated(gbnf_class(ascii_digits()), 1, kDigitsMax)});
    // The exponent is at most 199, so that the number fits a double whatever its digits are.
    const RuleId exponent = writer_.add_rule("exponent");
    writer_.add(exponent,
                {gbnf_class(CodePointSet({{'E', 'E'}, {'e', 'e'}})),
                 repeated(gbnf_class(CodePointSet({{'+', '+'}, {'-', '-'}})), 0, 1),
                 repeated(gbnf_literal("1"), 0, 1), repeated(gbnf_class(ascii_digits()), 1, 2)});
    writer_.add(*number_,
                {repeated(gbnf_literal("-"), 0, 1), gbnf_rule(whole),
                 repeated(gbnf_rule(fraction), 0, 1), repeated(gbnf_rule(exponent), 0, 1)});
  }
  return gbnf_rule(*number_);
}

GbnfItem JsonText::integer() {
  if (!integer_) {
    integer_ = writer_.add_rule("integer");
    writer_.add(*integer_, {gbnf_literal("0")});
    writer_.add(*integer_, {repeated(gbnf_literal("-"), 0, 1), gbnf_class(digits_but_zero()),
                            repeated(gbnf_class(ascii_digits()), 0, NumberRange::kDigitsMax - 1)});
  }
  return gbnf_rule(*integer_);
}

GbnfItem JsonText::bare(const Automaton& texts) { return gbnf_rule(states(texts, false)); }

RuleId JsonText::states(const Automaton& texts, bool in_quotes) {
  std::vector<RuleId> rules;
  for (std::size_t i = 0; i < texts.states().size(); ++i) {
    rules.push_back(writer_.add_rule(in_quotes ? "text" : "bare"));
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const Automaton::State& state = texts.states()[i];
    std::map<std::uint32_t, std::vector<CodePointRange>> ranges_to;
    for (const Automaton::Edge& edge : state.edges) ranges_to[edge.to].push_back(edge.range);
    for (auto& [to, ranges] : ranges_to) {
      const CodePointSet set(std::move(ranges));
      std::vector<GbnfSequence> ways = {{gbnf_class(set)}};
      if (in_quotes) ways = character(set);
      for (GbnfSequence& way : ways) {
        way.push_back(gbnf_rule(rules[to]));
        writer_.add(rules[i], std::move(way));
      }
    }
    if (!state.accepts) continue;
    writer_.add(rules[i], in_quotes ? GbnfSequence{gbnf_literal("\"")} : GbnfSequence{});
  }
  return rules[0];
}

std::vector<GbnfSequence> JsonText::character(const CodePointSet& set) {
  std::vector<GbnfSequence> ways;
  const CodePointSet plain = set.intersection(must_be_escaped().complement());
  const CodePointSet escaped = set.intersection(must_be_escaped());
  if (!plain.empty()) ways.push_back({gbnf_class(plain)});
  if (!escaped.empty()) ways.push_back({gbnf_literal("\\"), gbnf_rule(escapes(escaped))});
  return ways;
}

RuleId JsonText::escapes(const CodePointSet& set) {
  const auto [known, is_new] = escapes_.try_emplace(set, 0);
  if (!is_new) return known->second;
  known->second = writer_.add_rule("escape");
  const bool has_tag = !set.intersection(CodePointSet({{'<', '<'}})).empty();
  if (has_tag) writer_.add(known->second, {gbnf_literal(kEscapedTag)});
  std::vector<CodePointRange> letters;
  std::array<std::vector<CodePointRange>, 2> last_digits;  // the last digits of \u000x and \u001x
  for (const CodePointRange& range : set.ranges()) {
    for (char32_t c = range.first; c <= range.last; ++c) {
      if (const std::optional<char32_t> letter = short_escape(c)) {
        letters.push_back({*letter, *letter});
      } else if (c != '<') {
        const char32_t digit = U"0123456789abcdef"[c % 16];
        last_digits.at(c / 16).push_back({digit, digit});
      }
    }
  }
  if (!letters.empty()) {
    writer_.add(known->second, {gbnf_class(CodePointSet(std::move(letters)))});
  }
  for (std::size_t i = 0; i < last_digits.size(); ++i) {
    if (last_digits.at(i).empty()) continue;
    writer_.add(known->second, {gbnf_literal("u00" + std::to_string(i)),
                                gbnf_class(CodePointSet(std::move(last_digits.at(i))))});
  }
  return known->second;
}

GbnfSequence JsonText::literal(const Json& value) {
  GbnfSequence sequence;
  append_literal(sequence, value);
  return sequence;
}

void JsonText::append_literal(GbnfSequence& sequence, const Json& value) {
  if (value.is_structured()) {
    sequence.push_back(gbnf_literal(value.is_array() ? "[" : "{"));
    bool is_first = true;
    for (auto member = value.begin(); member != value.end(); ++member) {
      if (!std::exchange(is_first, false)) sequence.push_back(comma());
      if (value.is_object()) {
        sequence.push_back(key(member.key()));
        sequence.push_back(colon());
      }
      append_literal(sequence, *member);
    }
    sequence.push_back(gbnf_literal(value.is_array() ? "]" : "}"));
  } else {
    sequence.push_back(scalar(value));
  }
}

GbnfItem JsonText::key(const std::string& name) const { return scalar(name); }

GbnfItem JsonText::scalar(const Json& value) const {
  if (value.is_number()) return gbnf_literal(number_text(value));
  std::string text = value.dump();
  if (tags_ == Tags::kNone) return gbnf_literal(text);
  for (std::size_t at = 0; (at = text.find('<', at)) != text.npos; ++at) {
    text.replace(at, 1, "\\" + std::string(kEscapedTag));
  }
  return gbnf_literal(text);
}

}  // namespace slipstream
