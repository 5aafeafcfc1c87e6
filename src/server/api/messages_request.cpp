#include "server/api/messages_request.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/format.h"
#include "server/api/message_blocks.h"
#include "server/ascii.h"

namespace slipstream {
namespace {

bool is_cached(const Json& block) { return member(block, "cache_control") != nullptr; }

// Clients put "cache_control" on the request, blocks of "system", tools, or blocks of messages.
bool wants_cache(const Json& body) {
  if (is_cached(body)) return true;
  for (const char* name : {"system", "tools"}) {
    const Json* list = member(body, name);
    if (list != nullptr && list->is_array() && std::ranges::any_of(*list, is_cached)) return true;
  }
  const Json* messages = member(body, "messages");
  if (messages == nullptr || !messages->is_array()) return false;
  return std::ranges::any_of(*messages, [](const Json& message) {
    const Json* content = member(message, "content");
    return content != nullptr && content->is_array() && std::ranges::any_of(*content, is_cached);
  });
}

ApiResult<Json> read_messages(JsonFields& fields, Json& body) {
  const Json* messages = fields.array("messages");
  if (messages == nullptr || messages->empty()) {
    if (fields.error()) return std::unexpected(*fields.error());
    return refuse("messages", "'messages' must be an array with at least one message");
  }
  Json chat = Json::array();
  ApiResult<Json> system = to_system_message(take(body, "system"));
  if (!system) return std::unexpected(system.error());
  if (!system->is_null()) chat.push_back(std::move(*system));
  if (auto added = add_messages(take(body, "messages"), chat); !added) {
    return std::unexpected(added.error());
  }
  return chat;
}

// A custom tool is {"name", "description", "input_schema"}. Tools with a type of their own
// (web_search_20250305) run at Anthropic and are refused.
ApiResult<Json> read_custom_tools(Json tools) {
  if (tools.is_null()) return Json();
  if (!tools.is_array()) return refuse("tools", "'tools' must be an array");
  Json functions = Json::array();
  for (std::size_t i = 0; i < tools.size(); ++i) {
    Json& tool = tools[i];
    const Json* type = member(tool, "type");
    const Json* name = member(tool, "name");
    if (type != nullptr && !type->is_null() && *type != "custom") {
      return refuse(format_text("tools[{}].type", i),
                    format_text("'tools[{}]' is of type {}: this server has no tools of its own, "
                                "and takes those with an input_schema",
                                i, dump(*type)));
    }
    if (name == nullptr || !name->is_string()) {
      return refuse(format_text("tools[{}].name", i),
                    format_text("'tools[{}].name' must be a text", i));
    }
    Json function = {{"name", *name}};
    if (tool.contains("description")) function["description"] = std::move(tool["description"]);
    if (tool.contains("input_schema")) function["parameters"] = std::move(tool["input_schema"]);
    functions.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return functions;
}

ToolChoice read_call_choice(JsonFields& fields, Json& tools) {
  ToolChoice result;
  const Json* choice = fields.object("tool_choice");
  if (choice == nullptr) return result;
  JsonFields choice_fields(*choice, "tool_choice");
  const std::string type = choice_fields.text("type").value_or("");
  result.allows_several = !choice_fields.boolean("disable_parallel_tool_use").value_or(false);
  result.name = choice_fields.text("name").value_or("");
  if (choice_fields.error()) {
    fields.refuse("tool_choice", choice_fields.error()->message);
  } else if (type == "none") {
    tools = {};
  } else if (type == "any") {
    result.kind = ToolChoice::Kind::kRequired;
  } else if (type == "tool") {
    result.kind = ToolChoice::Kind::kNamed;
  } else if (type != "auto") {
    fields.refuse("tool_choice", "'tool_choice.type' must be auto, any, tool or none");
  }
  check_tool_choice(fields, result, tools);
  return result;
}

// Reads "thinking": {"type": "enabled", "budget_tokens": 2048} and
// "output_config": {"effort": "low"}.
ReasoningDemand read_thinking(JsonFields& fields) {
  ReasoningDemand demand;
  if (const Json* config = fields.object("output_config")) {
    JsonFields config_fields(*config, "output_config");
    read_effort(config_fields, "effort", demand);
    if (const auto& error = config_fields.error()) fields.refuse(error->param, error->message);
  }
  demand.is_on.reset();  // an effort alone does not turn reasoning on
  const Json* thinking = fields.object("thinking");
  if (thinking == nullptr) return demand;
  JsonFields thinking_fields(*thinking, "thinking");
  const std::string type = thinking_fields.text("type").value_or("");
  if (type != "enabled" && type != "adaptive" && type != "disabled") {
    fields.refuse("thinking", "'thinking.type' must be enabled, adaptive or disabled");
  }
  demand.is_on = type != "disabled";
  read_budget(thinking_fields, "budget_tokens", demand);
  if (const auto& error = thinking_fields.error()) fields.refuse(error->param, error->message);
  return demand;
}

// Reads "output_config": {"format": {"type": "json_schema", "schema": ...}}.
std::optional<Json> read_output_format(JsonFields& fields, Json& body) {
  const Json* config = fields.object("output_config");
  const Json* format = config == nullptr ? nullptr : member(*config, "format");
  if (format == nullptr || format->is_null()) return std::nullopt;
  const Json* type = member(*format, "type");
  if (type == nullptr || *type != "json_schema" || member(*format, "schema") == nullptr) {
    fields.refuse("output_config.format",
                  "'output_config.format' must be {\"type\": \"json_schema\", \"schema\": ...}");
    return std::nullopt;
  }
  return std::optional<Json>(std::in_place, std::move(body["output_config"]["format"]["schema"]));
}

bool has_words(const Json& text) {
  return text.is_string() && !trim(text.get_ref<const std::string&>()).empty();
}

// If the last message is the assistant's, it is the beginning of the answer, unless it calls tools
// or has no text: then it is complete.
bool begins_answer(const Json& message) {
  if (message["role"] != "assistant" || message.contains("tool_calls")) return false;
  const Json& content = message["content"];
  if (!content.is_array()) return has_words(content);
  return std::ranges::any_of(content, [](const Json& part) { return has_words(part["text"]); });
}

ApiResult<MessagesRequest> read(Json& body, bool must_have_max_tokens) {
  JsonFields fields(body);
  MessagesRequest request;
  request.wants_cache = wants_cache(body);
  request.chat.options = read_generation_options(fields);
  GenerationOptions& options = request.chat.options;
  if (options.n != 1) fields.refuse("n", "'n' must be 1 here");
  const bool has_limit = options.max_tokens || fields.any("max_tokens") != nullptr;  // or -1
  if (must_have_max_tokens && !has_limit) {
    fields.refuse("max_tokens", "'max_tokens' is required");
  }
  // Clients ask for as many tokens as their largest model can write.
  options.may_shorten = true;
  options.stops = fields.texts("stop_sequences");
  if (fields.error()) return std::unexpected(*fields.error());

  ApiResult<Json> messages = read_messages(fields, body);
  if (!messages) return std::unexpected(messages.error());
  if (messages->empty()) {
    return refuse("messages", "'messages' must have at least one message with content");
  }
  request.chat.messages = std::move(*messages);
  ApiResult<Json> tools = read_custom_tools(take(body, "tools"));
  if (!tools) return std::unexpected(tools.error());
  request.chat.tools = std::move(*tools);
  request.chat.tool_choice = read_call_choice(fields, request.chat.tools);
  request.chat.reasoning = read_thinking(fields);
  request.chat.retrieval = read_retrieval(fields);
  request.chat.response_schema = read_output_format(fields, body);
  check_demands(fields, request.chat);
  request.chat.continues_last = begins_answer(request.chat.messages.back());
  if (request.chat.continues_last) check_continuation(fields, "messages", request.chat);
  if (fields.error()) return std::unexpected(*fields.error());
  return request;
}

}  // namespace

ApiResult<MessagesRequest> read_messages_request(Json& body) { return read(body, true); }

ApiResult<MessagesRequest> read_count_tokens_request(Json& body) { return read(body, false); }

}  // namespace slipstream
