// ChatRequest: the body of POST /v1/chat/completions.
//
// Messages and tools stay as the client wrote them, because the model's template reads them.
//
// Threads: plain data. Errors: 400 that names the field.
#pragma once

#include <optional>

#include "server/api/generation_options.h"
#include "server/api/reasoning_demand.h"
#include "server/api/retrieval_demand.h"

namespace slipstream {

// Which tools the model must call: its own choice, at least one, or the named one.
struct ToolChoice {
  enum class Kind { kAuto, kRequired, kNamed };
  Kind kind = Kind::kAuto;
  std::string name = {};       // kNamed: the name of a tool in `tools`
  bool allows_several = true;  // "parallel_tool_calls"
};

struct ChatRequest {
  GenerationOptions options;
  Json messages;
  Json tools = {};  // null if there are none, or if tool_choice is "none"
  ToolChoice tool_choice = {};
  ReasoningDemand reasoning = {};
  Json template_variables = {};  // "chat_template_kwargs"
  // From "response_format": the schema that the answer must match, unless it calls tools.
  std::optional<Json> response_schema = {};
  std::optional<RetrievalDemand> retrieval = {};
  bool adds_generation_prompt = true;
  bool continues_last = false;  // the answer continues the last message
};

// The readers of the other APIs make these checks, too. check_tool_choice() refuses a demanded call
// of a tool that is missing. check_demands() refuses two demands that exclude each other.
void check_tool_choice(JsonFields& fields, const ToolChoice& choice, const Json& tools);
void check_demands(JsonFields& fields, const ChatRequest& request);
// Refuses to continue a last message that cannot be continued. `name`: the field that asks for it.
void check_continuation(JsonFields& fields, std::string_view name, const ChatRequest& request);

// Moves long values out of the body, because copied JSON takes many times the memory of its text.
[[nodiscard]] ApiResult<ChatRequest> read_chat_request(Json& body);

}  // namespace slipstream
