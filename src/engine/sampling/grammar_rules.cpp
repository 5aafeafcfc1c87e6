#include "engine/sampling/grammar_rules.h"

#include <utility>

#include "base/format.h"

namespace slipstream {
namespace {

using Kind = GrammarSymbol::Kind;

// For messages: a name may be as long as the grammar.
std::string_view shortened(std::string_view name) { return name.substr(0, 64); }

// The rules that may match the empty text. An alternative may if all its symbols are such rules.
// Each rule is visited once, when it is found, so that this takes linear time.
std::vector<bool> rules_that_may_be_empty(const GrammarRules& grammar) {
  struct Alternative {
    std::uint32_t rule;
    std::size_t n_left;  // symbols not known to match the empty text
  };
  std::vector<Alternative> alternatives;
  std::vector<std::vector<std::size_t>> alternatives_with(grammar.rules.size());
  std::vector<bool> may_be_empty(grammar.rules.size());
  std::vector<std::uint32_t> found;
  const auto find = [&](std::uint32_t rule) {
    if (may_be_empty[rule]) return;
    may_be_empty[rule] = true;
    found.push_back(rule);
  };
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    for (const GrammarRules::Sequence& sequence : grammar.rules[rule].alternatives) {
      for (const GrammarSymbol& symbol : sequence) {
        if (symbol.kind == Kind::kRule) {
          alternatives_with[symbol.value].push_back(alternatives.size());
        }
      }
      alternatives.push_back({rule, sequence.size()});
      if (sequence.empty()) find(rule);
    }
  }
  while (!found.empty()) {
    const std::uint32_t rule = found.back();
    found.pop_back();
    for (const std::size_t i : alternatives_with[rule]) {
      if (--alternatives[i].n_left == 0) find(alternatives[i].rule);
    }
  }
  return may_be_empty;
}

// For each rule, the rules it may begin with.
std::vector<std::vector<std::uint32_t>> rules_to_begin_with(const GrammarRules& grammar) {
  const std::vector<bool> may_be_empty = rules_that_may_be_empty(grammar);
  std::vector<std::vector<std::uint32_t>> begins(grammar.rules.size());
  for (std::uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    for (const GrammarRules::Sequence& sequence : grammar.rules[rule].alternatives) {
      for (std::size_t i = 0; i < sequence.size() && sequence[i].kind == Kind::kRule; ++i) {
        const std::uint32_t next = sequence[i].value;
        // In `loop ::= item loop |`, if item may be empty, the loop at the end is the same rule
        // with nothing left to do; the matcher detects that.
        const bool same_again = next == rule && i + 1 == sequence.size();
        if (!same_again) begins[rule].push_back(next);
        if (!may_be_empty[next]) break;
      }
    }
  }
  return begins;
}

// Looks for a rule on a cycle. The depth-first search does not recurse: a chain may be as long as
// the grammar.
Result<void> check_left_recursion(const GrammarRules& grammar) {
  const std::vector<std::vector<std::uint32_t>> begins = rules_to_begin_with(grammar);
  enum class Visit : std::uint8_t { kNot, kOpen, kDone };
  std::vector<Visit> visits(grammar.rules.size(), Visit::kNot);
  std::vector<std::pair<std::uint32_t, std::size_t>> path;  // a rule, and the next one to visit
  for (std::uint32_t start = 0; start < grammar.rules.size(); ++start) {
    if (visits[start] != Visit::kNot) continue;
    visits[start] = Visit::kOpen;
    path.emplace_back(start, 0);
    while (!path.empty()) {
      auto& [rule, i] = path.back();
      if (i == begins[rule].size()) {
        visits[rule] = Visit::kDone;
        path.pop_back();
        continue;
      }
      const std::uint32_t next = begins[rule][i++];
      if (visits[next] == Visit::kOpen) {
        return fail(Code::kInvalidArgument,
                    format_text("grammar: rule \"{}\" can begin with itself (left recursion)",
                                shortened(grammar.rules[next].name)));
      }
      if (visits[next] == Visit::kNot) {
        visits[next] = Visit::kOpen;
        path.emplace_back(next, 0);
      }
    }
  }
  return {};
}

}  // namespace

Result<void> check_rules(const GrammarRules& grammar) {
  for (const GrammarRules::Rule& rule : grammar.rules) {
    if (!rule.defined) {
      return fail(
          Code::kInvalidArgument,
          format_text("grammar: rule \"{}\" is used but not defined", shortened(rule.name)));
    }
  }
  return check_left_recursion(grammar);
}

}  // namespace slipstream
