// prompt_boundaries(): the positions, in tokens, from which other prompts of chats may differ.
//
// The next conversation has the same system prompt and tools, but another first user message. The
// next turn has all messages of this one, but perhaps not what the template wrote after the last
// message: some templates open reasoning there and omit it from later prompts. Models with a
// recurrent state can continue only from a saved state, so it is saved at these positions.
//
// Threads: immutable. Errors: none; a position that cannot be found is left out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/marked_text.h"
#include "engine/text/vocabulary.h"
#include "server/json.h"

namespace slipstream {

// The beginning of the first user message; empty if there is none.
[[nodiscard]] std::string first_words_of_user(const Json& messages);

// Returns the boundaries in ascending order. `first_words`: from first_words_of_user().
[[nodiscard]] std::vector<int> prompt_boundaries(const Vocabulary& vocabulary,
                                                 const MarkedText& prompt,
                                                 std::span<const Token> tokens,
                                                 std::string_view first_words);

}  // namespace slipstream
