// The text that needles and work stand in: pieces of a long text, counted in the tested model's
// tokens. After its end it continues at the beginning.
//
// Threads: as Vocabulary, which must outlive it, as must the text. Errors: none.
#pragma once

#include <span>
#include <string>

#include "bench/quality/needles.h"
#include "engine/text/vocabulary.h"

namespace slipstream::quality {

[[nodiscard]] inline Hay hay_of(const Vocabulary& vocabulary, std::span<const Token> tokens) {
  return [&vocabulary, tokens](std::size_t place, std::size_t n_tokens) {
    std::string text;
    for (std::size_t i = 0; i < n_tokens; ++i) {
      text += vocabulary.piece(tokens[(place + i) % tokens.size()], false);
    }
    return text;
  };
}

}  // namespace slipstream::quality
