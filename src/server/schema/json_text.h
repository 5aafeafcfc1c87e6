// JsonText: the rules of JSON itself, as answers spell it. Each value has few spellings, so that a
// model cannot lose itself in spaces or escapes:
//
//   - nothing but one optional space after a comma or a colon,
//   - in strings, every character as itself, but escaped where JSON demands it: \" and \\, then
//     \b \f \n \r \t and otherwise \u00xx with small letters. So equal strings are equal texts.
//
// Inside of a format with tags a string must not look like one: there < is escaped too.
//
// Threads: thread-compatible. Errors: none; see GbnfWriter::is_full().
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
  // Strings of any characters, so many; and those of the set, in quotes.
  [[nodiscard]] GbnfItem string(const CountRange& length);
  [[nodiscard]] GbnfItem string(const Automaton& texts);
  // Any number, any integer; and numbers with these texts.
  [[nodiscard]] GbnfItem number();
  [[nodiscard]] GbnfItem integer();
  [[nodiscard]] GbnfItem number(const Automaton& texts) { return bare(texts); }
  // These texts as they are, without quotes or escapes.
  [[nodiscard]] GbnfItem bare(const Automaton& texts);
  // This key of an object.
  [[nodiscard]] GbnfItem key(const std::string& name) const;
  // This very value.
  [[nodiscard]] GbnfSequence literal(const Json& value);

 private:
  [[nodiscard]] GbnfItem separator(std::optional<RuleId>& rule, std::string_view mark);
  [[nodiscard]] CodePointSet must_be_escaped() const;
  // A string, number or word.
  [[nodiscard]] GbnfItem scalar(const Json& value) const;
  [[nodiscard]] RuleId any_character();
  // One character of the set inside quotes: one sequence, or two where some must be escaped.
  [[nodiscard]] std::vector<GbnfSequence> character(const CodePointSet& set);
  // What follows the \ of these characters.
  [[nodiscard]] RuleId escapes(const CodePointSet& set);
  // The rest of a text from state 0 on. In quotes it is escaped, and ends with a quote.
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
