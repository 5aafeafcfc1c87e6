// annotations_of(): citations as OpenAI's APIs show them: as "url_citation", with the URL of a file.
//
// Threads: immutable. Errors: none.
#pragma once

#include <span>

#include "server/json.h"
#include "server/turn/citations.h"

namespace slipstream {

// Of a message of the chat API.
[[nodiscard]] Json chat_annotations(std::span<const Citation> citations);
// Of an "output_text" of the Responses API.
[[nodiscard]] Json response_annotations(std::span<const Citation> citations);

}  // namespace slipstream
