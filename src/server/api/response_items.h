// Items of OpenAI's Responses API as messages of its chat API, which templates read.
//
//   message                   -> a message of its role; "developer" is "system"
//   reasoning, function_call  -> "reasoning_content" and "tool_calls" of the assistant's message
//   function_call_output      -> a message of the role "tool"
//
// What the assistant thought, said and called between two messages of others is one message: a turn
// to a template. Ids of items are left out: they change, and a prompt that begins as an earlier one
// is not computed again. A call_id only links a result to its call. Encrypted reasoning is OpenAI's
// own and is left out.
//
// Threads: thread-compatible. Errors: 400 that names the field, such as for what is no text.
#pragma once

#include <string>

#include "server/api/api_error.h"
#include "server/json.h"

namespace slipstream {

class ItemMessages {
 public:
  // Takes the item apart. path: of the item in the body, "input[3]".
  [[nodiscard]] ApiResult<void> add(Json& item, const std::string& path);
  // All messages, in order. Nothing can be added afterwards.
  [[nodiscard]] Json take_all();

 private:
  [[nodiscard]] ApiResult<void> add_message(Json& item, const std::string& path);
  [[nodiscard]] ApiResult<void> add_reasoning(Json& item, const std::string& path);
  [[nodiscard]] ApiResult<void> add_call(Json& item, const std::string& path);
  [[nodiscard]] ApiResult<void> add_result(Json& item, const std::string& path);

  // The assistant's message that is being made.
  [[nodiscard]] Json& turn();
  void end_turn();

  Json messages_ = Json::array();
  Json turn_;  // null: none
};

}  // namespace slipstream
