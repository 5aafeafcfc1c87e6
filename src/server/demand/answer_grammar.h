// grammar_of_answer(): the grammar (GBNF) that a request demands of its answer: the calls of
// "tool_choice", a value under the schema of "response_format", or the client's own grammar. Empty
// if the request demands nothing.
//
// Threads: immutable.
// Errors:  ApiErrors that name the field which cannot be obeyed.
#pragma once

#include <string>
#include <string_view>

#include "engine/text/vocabulary.h"
#include "server/api/api_error.h"
#include "server/api/chat_request.h"
#include "server/template/chat_template.h"

namespace slipstream {

// `prompt` is what the template made of the request. It may have opened reasoning.
[[nodiscard]] ApiResult<std::string> grammar_of_answer(const ChatTemplate& chat,
                                                       const Vocabulary& vocabulary,
                                                       const ChatRequest& request,
                                                       std::string_view prompt);

}  // namespace slipstream
