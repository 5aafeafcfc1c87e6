// JsonText: grammar rules for JSON itself, as answers spell it. Each value has few spellings, so
// that a model cannot get lost in spaces or escapes:
//
//   - The only whitespace is one optional space after a comma or a colon.
//   - In strings, a character is escaped only where JSON requires it: \" and \\, then \b \f \n \r
//     \t, otherwise \u00xx with lower-case digits. So equal strings have equal texts.
//
// Inside a format with tags, a string must not look like a tag: there, < is escaped too.
//
// Threads: thread-compatible.
// Errors:  none; see GbnfWriter::is_full().
#pragma once

#include <map>
#include <optional>

#include "server/schema/automaton.h"
#include "server/schema/gbnf_writer.h"
#include "server/schema/shape.h"

namespace slipstream {

class JsonText {
 public:
  enum class Tags { kNone, kAround };
  explicit JsonText(GbnfWriter& writer, Tags tags = Tags::kNone) : writer_(writer), tags_(tags) {}

  [[nodiscard]] GbnfItem comma() { return separator(comma_, ","); }
  [[nodiscard]] GbnfItem colon() { return separator(colon_, ":"); }
  // A string in quotes: of any characters with this length, or one of these texts.
  [[nodiscard]] GbnfItem string(const CountRange& length);
  [[nodiscard]] GbnfItem string(const Automaton& texts);
  // Any number, any integer, or a number with one of these texts.
  [[nodiscard]] GbnfItem number();
  [[nodiscard]] GbnfItem integer();
  [[nodiscard]] GbnfItem number(const Automaton& texts) { return bare(texts); }
  // One of these texts, without quotes or escapes.
  [[nodiscard]] GbnfItem bare(const Automaton& texts);
  [[nodiscard]] GbnfItem key(const std::string& name) const;
  // Exactly this value.
  [[nodiscard]] GbnfSequence literal(const Json& value);

 private:
  [[nodiscard]] GbnfItem separator(std::optional<RuleId>& rule, std::string_view mark);
  [[nodiscard]] CodePointSet must_be_escaped() const;
  // The value is a string, a number, or true, false or null.
  [[nodiscard]] GbnfItem scalar(const Json& value) const;
  [[nodiscard]] RuleId any_character();
  // One character of the set inside quotes. The result is one sequence, or two if some of the
  // characters must be escaped.
  [[nodiscard]] std::vector<GbnfSequence> character(const CodePointSet& set);
  // The part of the escape sequences of these characters that follows the \.
  [[nodiscard]] RuleId escapes(const CodePointSet& set);
  // The rest of a text, starting at state 0. In quotes, it is escaped and ends with a quote.
  [[nodiscard]] RuleId states(const Automaton& texts, bool in_quotes);
  void append_literal(GbnfSequence& sequence, const Json& value);

  GbnfWriter& writer_;
  const Tags tags_;
  std::optional<RuleId> comma_;
  std::optional<RuleId> colon_;
  std::optional<RuleId> number_;
  std::optional<RuleId> integer_;
  std::optional<RuleId> any_character_;
  std::map<CodePointSet, RuleId> escapes_;
  std::map<CountRange, RuleId> strings_;
};

}  // namespace slipstream
