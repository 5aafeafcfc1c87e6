// GrammarLimits: how large a grammar may be, and what one token may cost.
//
// Threads: immutable.
#pragma once

#include <cstddef>

namespace slipstream {

struct GrammarLimits {
  // A larger grammar is refused (grammar.h). A repetition counts as often as it repeats.
  std::size_t grammar_bytes_max = std::size_t{256} << 10;
  std::size_t grammar_symbols_max = std::size_t{1} << 18;
  std::size_t grammar_nesting_max = 128;
  // A grammar that needs more than this for one token fails its request (grammar_matcher.h): it is
  // so ambiguous that the ways to read the answer multiply. Inside a JSON string, where nearly
  // every token is allowed, checking all 50,000 tokens of GPT-2 takes half a million steps, and the
  // 262,144 of the largest vocabulary in use some three million. All steps together take a quarter
  // of a second, for which every sequence's next token waits.
  std::size_t grammar_steps_max = std::size_t{1} << 22;
  std::size_t grammar_nodes_max = std::size_t{1} << 20;
};

inline constexpr GrammarLimits kGrammarLimits{};

}  // namespace slipstream
