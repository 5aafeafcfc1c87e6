// GBNF, the text form of grammars, as https://github.com/ggml-org/llama.cpp/tree/master/grammars
// describes it:
//
//   root   ::= answer ("," answer){0,3}     # a comment
//   answer ::= "yes" | "no" | [0-9a-f\x20]+ | . | <|im_end|> | !<[42]>
//
// Threads: pure function.
// Errors:  kInvalidArgument with the line, also for what exceeds GrammarLimits::grammar_*.
#pragma once

#include <string_view>

#include "base/result.h"
#include "engine/sampling/grammar_rules.h"

namespace slipstream {

[[nodiscard]] Result<GrammarRules> parse_gbnf(std::string_view text, int n_tokens,
                                              const TokenOfName& token_of_name);

}  // namespace slipstream
