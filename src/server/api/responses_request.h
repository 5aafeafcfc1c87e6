// ResponsesRequest: the body of POST /v1/responses.
//
// It is read into the ChatRequest that the chat API would make of the same conversation. So both
// have the same prompt and share computed prefixes. Fields that only the chat API documents, such
// as top_k or seed, work here too.
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
  // The fields of the request that the answer repeats: a JSON object as text, without its braces.
  std::string echo = {};
  std::map<std::string, std::string> spaces = {};  // ResponseTools::spaces
  std::vector<std::string> tool_paths = {};        // ResponseTools::paths
  // All items of the conversation as a JSON array, for the store. Empty: "store" is false.
  std::string items = {};
};

// Moves long values out of the body, because copied JSON takes many times the memory of its text.
[[nodiscard]] ApiResult<ResponsesRequest> read_responses_request(Json& body, PastResponses& past);

}  // namespace slipstream
