// ResponsesRequest: the body of POST /v1/responses.
//
// It becomes the ChatRequest that the chat API would have made of the same conversation, so that
// templates, tools and prefixes see no difference. Fields of the chat API that OpenAI does not have
// here, such as top_k or seed, work as there.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/api/chat_request.h"
#include "server/api/past_responses.h"

namespace slipstream {

struct ResponsesRequest {
  ChatRequest chat = {};
  // What the answer repeats of the request: members of a JSON object, as text without its braces.
  std::string echo = {};
  std::map<std::string, std::string> spaces = {};  // as of ResponseTools
  std::vector<std::string> tool_paths = {};        // as of ResponseTools
  // "store": all items of the conversation, as a JSON array. Empty: nothing is to be kept.
  std::string items = {};
};

// Takes what may be long out of the body.
[[nodiscard]] ApiResult<ResponsesRequest> read_responses_request(Json& body, PastResponses& past);

}  // namespace slipstream
