// GbnfWriter: a grammar under construction. Rules are numbered and may be used before they are
// filled, so that a schema may contain itself. Parts that no text can complete (a rule without
// alternatives, an object that must contain itself) are left out of the text, because a model must
// not enter them.
//
// Nothing more is added once there are more symbols or rules than Grammar accepts.
//
// Threads: thread-compatible.
// Errors:  kInvalidArgument if no text matches, kUnsupported if the grammar is too large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/request.h"
#include "server/schema/code_point_set.h"

namespace slipstream {

using RuleId = std::uint32_t;

// One element of a sequence, repeated n_min to n_max times.
struct GbnfItem {
  std::optional<RuleId> rule;  // if not set, `text` is used
  std::string text;            // a literal or class, as GBNF writes it
  std::size_t n_symbols = 1;   // symbols in the text, as Grammar counts them
  std::size_t n_min = 1;
  std::optional<std::size_t> n_max = 1;
};
using GbnfSequence = std::vector<GbnfItem>;

[[nodiscard]] GbnfItem gbnf_literal(std::string_view utf8);
[[nodiscard]] GbnfItem gbnf_class(const CodePointSet& set);
[[nodiscard]] GbnfItem gbnf_rule(RuleId rule);
// Matches exactly this token of the vocabulary, whatever its text is.
[[nodiscard]] GbnfItem gbnf_token(Token token);
[[nodiscard]] GbnfItem repeated(GbnfItem item, std::size_t n_min, std::optional<std::size_t> n_max);

class GbnfWriter {
 public:
  // The rule's name is kind-NUMBER; `kind` only helps human readers.
  [[nodiscard]] RuleId add_rule(std::string_view kind);
  void add(RuleId rule, GbnfSequence sequence);

  [[nodiscard]] bool is_full() const;
  [[nodiscard]] static Error too_large();
  // Whether any text matches the rule.
  [[nodiscard]] bool can_match(RuleId rule) const { return rules_that_can_end()[rule]; }
  [[nodiscard]] Result<std::string> text(RuleId root) const;

 private:
  struct Rule {
    std::string name;
    std::vector<GbnfSequence> alternatives;
  };

  [[nodiscard]] std::vector<bool> rules_that_can_end() const;
  [[nodiscard]] std::vector<RuleId> rules_in_use(RuleId root,
                                                 const std::vector<bool>& can_end) const;
  [[nodiscard]] static bool can_end(const GbnfSequence& sequence, const std::vector<bool>& rules);
  void append(std::string& text, const GbnfSequence& sequence,
              const std::vector<bool>& rules) const;

  std::vector<Rule> rules_;
  std::size_t n_symbols_ = 0;
};

}  // namespace slipstream
