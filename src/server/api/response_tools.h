// Tools of OpenAI's Responses API, which are flat, as its chat API has them.
//
// Only functions can be called here. Tools that run at OpenAI, or that other kinds of models call
// (web_search, mcp, custom, local_shell, ...), are left out: coding agents send some with every
// request and give up where they are refused. The functions of a namespace are functions.
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
  Json functions = Json::array();                  // as in {"type": "function", "function": {...}}
  std::vector<std::string> paths = {};             // of each in the body: "tools[2]"
  std::map<std::string, std::string> spaces = {};  // namespaces by the names of their functions
};

[[nodiscard]] ApiResult<ResponseTools> read_response_tools(Json tools);

// "tool_choice" as the chat API has it. One of "allowed_tools" takes all others away.
[[nodiscard]] ApiResult<Json> read_response_tool_choice(Json choice, ResponseTools& tools);

}  // namespace slipstream
