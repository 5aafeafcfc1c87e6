// Turns tools of OpenAI's Responses API, which are flat, into those of its chat API.
//
// Models here can call functions only. All other tools (web_search, mcp, custom, local_shell, ...)
// are dropped instead of refused: coding agents send some with every request and give up if they
// are refused. The functions inside a namespace are taken like all other functions.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/api/api_error.h"
#include "server/json.h"

namespace slipstream {

struct ResponseTools {
  Json functions = Json::array();                  // [{"type": "function", "function": {...}}]
  std::vector<std::string> paths = {};             // where each is in the body: "tools[2]"
  std::map<std::string, std::string> spaces = {};  // function name to its namespace
};

[[nodiscard]] ApiResult<ResponseTools> read_response_tools(Json tools);

// Returns "tool_choice" as the chat API has it. "allowed_tools" removes all other tools.
[[nodiscard]] ApiResult<Json> read_response_tool_choice(Json choice, ResponseTools& tools);

}  // namespace slipstream
