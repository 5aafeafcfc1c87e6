// ChatRequest: the body of POST /v1/chat/completions.
//
// Messages and tools stay as the client wrote them: the model's template reads them.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <optional>

#include "server/api/generation_options.h"
#include "server/api/reasoning_demand.h"

namespace slipstream {

// Which tools the model calls: as it likes, at least one, or this one.
struct ToolChoice {
  enum class Kind { kAuto, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name = {};       // kNamed: of a tool in `tools`
  bool allows_several = true;  // "parallel_tool_calls"
};

struct ChatRequest {
  GenerationOptions options;
  Json messages;
  Json tools = {};  // none where tool_choice is "none"
  ToolChoice tool_choice = {};
  ReasoningDemand reasoning = {};
  Json template_variables = {};  // "chat_template_kwargs"
  // Of "response_format": what the answer must be, unless it calls tools.
  std::optional<Json> response_schema = {};
  bool adds_generation_prompt = true;
  bool continues_last = false;  // the answer is what follows the last message
};

// What other readers of conversations check, too: that tools which a call is demanded of are there,
// that not two things are demanded at once.
void check_tool_choice(JsonFields& fields, const ToolChoice& choice, const Json& tools);
void check_demands(JsonFields& fields, const ChatRequest& request);
// And that a message which is to be continued can be; `name`: of the field that wants it.
void check_continuation(JsonFields& fields, std::string_view name, const ChatRequest& request);

// Takes what may be long out of the body: a second one of it would be many times its text.
[[nodiscard]] ApiResult<ChatRequest> read_chat_request(Json& body);

}  // namespace slipstream
