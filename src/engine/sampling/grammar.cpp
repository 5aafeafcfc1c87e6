#include "engine/sampling/grammar.h"

#include <algorithm>
#include <utility>

#include "engine/sampling/gbnf_parser.h"
#include "engine/sampling/grammar_rules.h"

namespace slipstream {
namespace {

constexpr char32_t kCodePointEnd = 0x110000;

std::vector<CharClass::Range> merged(std::vector<CharClass::Range> ranges) {
  std::ranges::sort(ranges, {}, &CharClass::Range::first);
  std::vector<CharClass::Range> disjoint;
  for (const CharClass::Range& range : ranges) {
    if (!disjoint.empty() && range.first <= disjoint.back().last + 1) {
      disjoint.back().last = std::max(disjoint.back().last, range.last);
    } else {
      disjoint.push_back(range);
    }
  }
  return disjoint;
}

std::vector<CharClass::Range> all_but(const std::vector<CharClass::Range>& ranges) {
  std::vector<CharClass::Range> others;
  char32_t next = 0;
  for (const CharClass::Range& range : ranges) {
    if (next < range.first) others.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next < kCodePointEnd) others.push_back({next, kCodePointEnd - 1});
  return others;
}

}  // namespace

CharClass::CharClass(std::vector<Range> ranges, bool negated) : ranges_(merged(std::move(ranges))) {
  if (negated) ranges_ = all_but(ranges_);
  for (char32_t code_point = 0; code_point < ascii_.size(); ++code_point) {
    ascii_[code_point] = overlaps({code_point, code_point});
  }
}

bool CharClass::contains(char32_t code_point) const {
  if (code_point < ascii_.size()) return ascii_[code_point];
  return overlaps({code_point, code_point});
}

bool CharClass::overlaps(Range range) const {
  const auto candidate = std::ranges::lower_bound(ranges_, range.first, {}, &Range::last);
  return candidate != ranges_.end() && candidate->first <= range.last;
}

Result<Grammar> Grammar::parse(std::string_view text, int n_tokens,
                               const TokenOfName& token_of_name) {
  Result<GrammarRules> rules = parse_gbnf(text, n_tokens, token_of_name);
  if (!rules) return std::unexpected(rules.error());
  if (const Result<void> sensible = check_rules(*rules); !sensible) {
    return std::unexpected(sensible.error());
  }
  Grammar grammar;
  grammar.root_ = rules->root;
  grammar.classes_ = std::move(rules->classes);
  for (const GrammarRules::Rule& rule : rules->rules) {
    grammar.first_alternative_.push_back(static_cast<std::uint32_t>(grammar.alternatives_.size()));
    for (const GrammarRules::Sequence& sequence : rule.alternatives) {
      grammar.alternatives_.push_back(static_cast<std::uint32_t>(grammar.symbols_.size()));
      grammar.symbols_.insert(grammar.symbols_.end(), sequence.begin(), sequence.end());
      grammar.symbols_.push_back({Kind::kEnd, 0});
    }
  }
  grammar.first_alternative_.push_back(static_cast<std::uint32_t>(grammar.alternatives_.size()));
  return grammar;
}

std::span<const std::uint32_t> Grammar::alternatives(std::uint32_t rule) const {
  const std::span<const std::uint32_t> all(alternatives_);
  return all.subspan(first_alternative_[rule],
                     first_alternative_[rule + 1] - first_alternative_[rule]);
}

bool Grammar::matches(const GrammarSymbol& symbol, char32_t code_point) const {
  if (symbol.kind == Kind::kChar) return symbol.value == code_point;
  return symbol.kind == Kind::kClass && classes_[symbol.value].contains(code_point);
}

bool Grammar::matches_any(const GrammarSymbol& symbol, CharClass::Range range) const {
  if (symbol.kind == Kind::kChar) return symbol.value >= range.first && symbol.value <= range.last;
  return symbol.kind == Kind::kClass && classes_[symbol.value].overlaps(range);
}

}  // namespace slipstream
