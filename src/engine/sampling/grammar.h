// Grammar: rules for what an answer may look like, in llama.cpp's GBNF, parsed and checked.
//
// libllama reads the same language, but is not safe for untrusted input. In 0.7.0, nesting of
// 100,000 overflows the stack, `x{5,2}` and left recursion behind an optional rule take all memory,
// and the client's text goes to standard error. Here all of that is refused, with the line. [] and
// [z-a] are refused too; x{0,5000} is exact instead of unlimited. All else means the same.
//
// Threads: immutable. Errors: parse(): kInvalidArgument, with what is wrong and where.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/request.h"

namespace slipstream {

// One element of an alternative. One array holds all alternatives of all rules; kEnd ends each.
struct GrammarSymbol {
  enum class Kind : std::uint8_t {
    kEnd,
    kRule,      // value: number of the rule
    kChar,      // value: code point
    kClass,     // value: number of the class
    kToken,     // value: only this token, whatever its text
    kNotToken,  // value: any token except this one
  };
  Kind kind;
  std::uint32_t value;
};

// A set of code points: disjoint ranges in ascending order.
class CharClass {
 public:
  struct Range {
    char32_t first;
    char32_t last;
  };
  CharClass(std::vector<Range> ranges, bool negated);
  [[nodiscard]] bool contains(char32_t code_point) const;
  [[nodiscard]] bool overlaps(Range range) const;

 private:
  std::vector<Range> ranges_;
  std::bitset<128> ascii_;  // a shortcut: most characters are ASCII
};

// The single token that a text such as "<|im_end|>" stands for; none if it is not exactly one.
using TokenOfName = std::function<std::optional<Token>(std::string_view)>;

class Grammar {
 public:
  [[nodiscard]] static Result<Grammar> parse(std::string_view text, int n_tokens,
                                             const TokenOfName& token_of_name);

  using Kind = GrammarSymbol::Kind;
  [[nodiscard]] std::uint32_t root() const { return root_; }
  [[nodiscard]] const GrammarSymbol& symbol(std::uint32_t idx) const { return symbols_[idx]; }
  // Indices of the first symbols of a rule's alternatives.
  [[nodiscard]] std::span<const std::uint32_t> alternatives(std::uint32_t rule) const;
  // Whether the symbol is a character that may be this code point, or one of this range.
  [[nodiscard]] bool matches(const GrammarSymbol& symbol, char32_t code_point) const;
  [[nodiscard]] bool matches_any(const GrammarSymbol& symbol, CharClass::Range range) const;

 private:
  Grammar() = default;

  std::uint32_t root_ = 0;
  std::vector<GrammarSymbol> symbols_;
  std::vector<std::uint32_t> alternatives_;
  std::vector<std::uint32_t> first_alternative_;  // of each rule, and the end
  std::vector<CharClass> classes_;
};

}  // namespace slipstream
