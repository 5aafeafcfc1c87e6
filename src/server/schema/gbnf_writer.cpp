#include "server/schema/gbnf_writer.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "engine/sampling/grammar_limits.h"

namespace slipstream {
namespace {

// At least as many symbols as Grammar counts. Each repetition is a rule with two ends.
std::size_t n_symbols(const GbnfItem& item) {
  const std::size_t n_optional = item.n_max ? *item.n_max - item.n_min : 1;
  const bool once = item.n_min == 1 && n_optional == 0;
  return item.n_symbols + (once ? 0 : item.n_min + 4 * n_optional + 3);
}

bool is_dead(const GbnfItem& item, const std::vector<bool>& rules) {
  return item.rule && !rules[*item.rule];
}

// Any character other than a letter or digit could have a meaning in a class.
std::string class_char(char32_t c) {
  const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  if (plain) return std::string(1, static_cast<char>(c));
  const auto number = static_cast<std::uint32_t>(c);
  if (number < 0x100) return format_text("\\x{:02X}", number);
  return number < 0x10000 ? format_text("\\u{:04X}", number) : format_text("\\U{:08X}", number);
}

std::string repetition(const GbnfItem& item) {
  if (item.n_max == item.n_min) {
    return item.n_min == 1 ? "" : format_text("{{{}}}", item.n_min);
  }
  if (item.n_min == 0 && !item.n_max) return "*";
  if (item.n_min == 1 && !item.n_max) return "+";
  if (item.n_min == 0 && item.n_max == 1) return "?";
  return item.n_max ? format_text("{{{},{}}}", item.n_min, *item.n_max)
                    : format_text("{{{},}}", item.n_min);
}

}  // namespace

GbnfItem gbnf_literal(std::string_view utf8) {
  GbnfItem item;
  item.text = "\"";
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      item.text += '\\';
      item.text += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      item.text += format_text("\\x{:02X}", byte);
    } else {
      item.text += c;
    }
  }
  item.text += '"';
  item.n_symbols = utf8.size();
  return item;
}

GbnfItem gbnf_class(const CodePointSet& set) {
  GbnfItem item;
  item.text = "[";
  for (const CodePointRange& range : set.ranges()) {
    item.text += class_char(range.first);
    if (range.first != range.last) item.text += "-" + class_char(range.last);
  }
  item.text += ']';
  item.n_symbols = 1 + set.ranges().size();
  return item;
}

GbnfItem gbnf_rule(RuleId rule) {
  GbnfItem item;
  item.rule = rule;
  return item;
}

GbnfItem gbnf_token(Token token) {
  GbnfItem item;
  item.text = format_text("<[{}]>", token);
  return item;
}

GbnfItem repeated(GbnfItem item, std::size_t n_min, std::optional<std::size_t> n_max) {
  item.n_min = n_min;
  item.n_max = n_max;
  return item;
}

RuleId GbnfWriter::add_rule(std::string_view kind) {
  if (is_full()) return 0;
  n_symbols_ += 2;
  rules_.push_back({format_text("{}-{}", kind, rules_.size()), {}});
  return static_cast<RuleId>(rules_.size() - 1);
}

void GbnfWriter::add(RuleId rule, GbnfSequence sequence) {
  if (is_full()) return;
  ++n_symbols_;
  for (const GbnfItem& item : sequence) n_symbols_ += n_symbols(item);
  rules_[rule].alternatives.push_back(std::move(sequence));
}

// Rules count as symbols too: each takes a few dozen bytes of the text.
bool GbnfWriter::is_full() const { return n_symbols_ > kGrammarLimits.grammar_symbols_max; }

bool GbnfWriter::can_end(const GbnfSequence& sequence, const std::vector<bool>& rules) {
  return std::ranges::none_of(
      sequence, [&](const GbnfItem& item) { return item.n_min > 0 && is_dead(item, rules); });
}

// A rule is checked again only after a rule that it uses was found to end.
std::vector<bool> GbnfWriter::rules_that_can_end() const {
  std::vector<std::vector<RuleId>> users(rules_.size());
  std::vector<bool> found(rules_.size());
  std::vector<RuleId> todo;
  for (RuleId id = 0; id < rules_.size(); ++id) {
    todo.push_back(id);
    for (const GbnfSequence& sequence : rules_[id].alternatives) {
      for (const GbnfItem& item : sequence) {
        if (item.rule) users[*item.rule].push_back(id);
      }
    }
  }
  while (!todo.empty()) {
    const RuleId id = todo.back();
    todo.pop_back();
    if (found[id]) continue;
    found[id] = std::ranges::any_of(
        rules_[id].alternatives,
        [&found](const GbnfSequence& sequence) { return can_end(sequence, found); });
    if (found[id]) todo.insert(todo.end(), users[id].begin(), users[id].end());
  }
  return found;
}

std::vector<RuleId> GbnfWriter::rules_in_use(RuleId root, const std::vector<bool>& rules) const {
  std::vector<bool> seen(rules_.size());
  std::vector<RuleId> in_use = {root};
  seen[root] = true;
  for (std::size_t i = 0; i < in_use.size(); ++i) {
    for (const GbnfSequence& sequence : rules_[in_use[i]].alternatives) {
      if (!can_end(sequence, rules)) continue;
      for (const GbnfItem& item : sequence) {
        if (!item.rule || is_dead(item, rules) || seen[*item.rule]) continue;
        seen[*item.rule] = true;
        in_use.push_back(*item.rule);
      }
    }
  }
  return in_use;
}

void GbnfWriter::append(std::string& text, const GbnfSequence& sequence,
                        const std::vector<bool>& rules) const {
  bool is_empty = true;
  for (const GbnfItem& item : sequence) {
    if (is_dead(item, rules) || item.n_max == 0) continue;
    text += ' ';
    text += (item.rule ? rules_[*item.rule].name : item.text) + repetition(item);
    is_empty = false;
  }
  if (is_empty) text += " \"\"";
}

Error GbnfWriter::too_large() {
  return {
      .code = Code::kUnsupported,
      .message = format_text("needs a grammar of more than {} symbols or {} bytes",
                             kGrammarLimits.grammar_symbols_max, kGrammarLimits.grammar_bytes_max)};
}

Result<std::string> GbnfWriter::text(RuleId root) const {
  if (is_full()) return std::unexpected(too_large());
  const std::vector<bool> rules = rules_that_can_end();
  if (!rules[root]) return fail(Code::kInvalidArgument, "no value meets it");
  std::string text = format_text("root ::= {}\n", rules_[root].name);
  for (const RuleId id : rules_in_use(root, rules)) {
    text += rules_[id].name + " ::=";
    bool is_first = true;
    for (const GbnfSequence& sequence : rules_[id].alternatives) {
      if (!can_end(sequence, rules)) continue;
      if (!std::exchange(is_first, false)) text += " |";
      append(text, sequence, rules);
    }
    text += '\n';
    if (text.size() > kGrammarLimits.grammar_bytes_max) return std::unexpected(too_large());
  }
  return text;
}

}  // namespace slipstream
