// prompt_boundaries(): after how many tokens of a chat's prompt other prompts may differ.
//
// The next conversation has the same system prompt and tools, and another first message of the
// user. The next turn has all messages of this one, but perhaps not what the template wrote behind
// the last: some open reasoning there and leave it out of later prompts. Models with a recurrent
// state continue only from where their state was saved, so it is saved at these places.
//
// Threads: immutable. Errors: none; a place that cannot be found is left out.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/marked_text.h"
#include "engine/text/vocabulary.h"
#include "server/json.h"

namespace slipstream {

// How the first message of the user begins; empty: there is none.
[[nodiscard]] std::string first_words_of_user(const Json& messages);

// In ascending order. `first_words`: as of first_words_of_user().
[[nodiscard]] std::vector<int> prompt_boundaries(const Vocabulary& vocabulary,
                                                 const MarkedText& prompt,
                                                 std::span<const Token> tokens,
                                                 std::string_view first_words);

}  // namespace slipstream
