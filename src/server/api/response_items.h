// ItemMessages: turns items of OpenAI's Responses API into messages of its chat API, which chat
// templates read.
//
//   message                   -> a message of its role; "developer" is "system"
//   reasoning, function_call  -> "reasoning_content" and "tool_calls" of the assistant's message
//   function_call_output      -> a message of the role "tool"
//
// Consecutive items of the assistant (reasoning, messages, calls) become one message, because a
// template expects one message for each turn. Item ids are dropped: they change from request to
// request, and a changed prompt could not reuse a computed prefix. A call_id only links a result to
// its call. Encrypted reasoning can be read by OpenAI only and is dropped.
//
// Threads: thread-compatible.
// Errors:  400 that names the field, for example for a file.
#pragma once

#include <string>

#include "server/api/api_error.h"
#include "server/json.h"

namespace slipstream {

class ItemMessages {
 public:
  // Adds one item, and moves its texts out of it. path: where the item is in the body, "input[3]".
  [[nodiscard]] ApiResult<void> add(Json& item, const std::string& path);
  // Returns all messages in order. Nothing can be added afterwards.
  [[nodiscard]] Json take_all();

 private:
  [[nodiscard]] ApiResult<void> add_message(Json& item, const std::string& path);
  [[nodiscard]] ApiResult<void> add_reasoning(Json& item, const std::string& path);
  [[nodiscard]] ApiResult<void> add_call(Json& item, const std::string& path);
  [[nodiscard]] ApiResult<void> add_result(Json& item, const std::string& path);

  // The assistant's current message. Begins one if there is none.
  [[nodiscard]] Json& turn();
  void end_turn();

  Json messages_ = Json::array();
  Json turn_;  // the assistant's current message; null: none
};

}  // namespace slipstream
