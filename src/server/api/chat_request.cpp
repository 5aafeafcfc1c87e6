#include "server/api/chat_request.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "server/json.h"

namespace slipstream {
namespace {

constexpr std::size_t kVariablesMax = 1024;  // a template searches all of them for every name

void read_logprobs(JsonFields& fields, SamplingParams& sampling) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto n_top = fields.integer("top_logprobs", 0, kTopLogprobsMax);
  if (n_top && !wanted) fields.refuse("top_logprobs", "'top_logprobs' needs 'logprobs': true");
  if (wanted) sampling.n_top_logprobs = static_cast<int>(n_top.value_or(0));
}

bool has_text(const Json& object, std::string_view name) {
  const Json* text = member(object, name);
  return text != nullptr && text->is_string();
}

// Checks what every message must have, before the template reads it. A message of the assistant
// needs no content, because it may call tools instead.
void check_messages(JsonFields& fields) {
  const Json* messages = fields.array("messages");
  if (messages == nullptr || messages->empty()) {
    fields.refuse("messages", "'messages' must be an array with at least one message");
    return;
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const Json& message = (*messages)[i];
    const std::string path = format_text("messages[{}]", i);
    if (!has_text(message, "role")) {
      fields.refuse(path, format_text("'{}' must be an object with a role", path));
      return;
    }
    if (JsonFields(message).any("content") == nullptr && message["role"] != "assistant") {
      fields.refuse(path + ".content", format_text("'{}.content' is required", path));
      return;
    }
  }
}

bool is_function(const Json& tool) {
  const Json* type = member(tool, "type");
  return type != nullptr && *type == "function" && member(tool, "function") != nullptr &&
         has_text(tool["function"], "name");
}

void check_tools(JsonFields& fields) {
  const Json* tools = fields.array("tools");
  if (tools == nullptr) return;
  const auto wrong = std::ranges::find_if_not(*tools, is_function);
  if (wrong == tools->end()) return;
  fields.refuse("tools",
                format_text("'tools[{}]' must be a function with a name, as in {{\"type\": "
                            "\"function\", \"function\": {{\"name\": ...}}}}",
                            wrong - tools->begin()));
}

bool has_tool(const Json& tools, const std::string& name) {
  return std::ranges::any_of(
      tools, [&name](const Json& tool) { return tool["function"]["name"] == name; });
}

// The choice "none" removes all tools.
ToolChoice read_tool_choice(JsonFields& fields, Json& tools) {
  ToolChoice result;
  result.allows_several = fields.boolean("parallel_tool_calls").value_or(true);
  const Json* choice = fields.any("tool_choice");
  if (choice == nullptr || *choice == "auto") return result;
  if (*choice == "none") {
    tools = {};
    return result;
  }
  if (is_function(*choice)) result.name = (*choice)["function"]["name"].get<std::string>();
  if (*choice != "required" && result.name.empty()) {
    fields.refuse("tool_choice",
                  "'tool_choice' must be \"none\", \"auto\", \"required\" or {\"type\": "
                  "\"function\", \"function\": {\"name\": ...}}");
    return result;
  }
  result.kind = result.name.empty() ? ToolChoice::Kind::kRequired : ToolChoice::Kind::kNamed;
  check_tool_choice(fields, result, tools);
  return result;
}

std::optional<Json> read_response_format(JsonFields& fields, Json& body) {
  const Json* format = fields.object("response_format");
  if (format == nullptr) return std::nullopt;
  JsonFields format_fields(*format, "response_format");
  const std::string type = format_fields.text("type").value_or("");
  if (type == "text") return std::nullopt;
  if (type == "json_object") return std::optional<Json>(std::in_place, Json{{"type", "object"}});
  if (type == "json_schema") {
    const Json* json_schema = format_fields.object("json_schema");
    if (json_schema != nullptr && json_schema->contains("schema")) {
      return std::optional<Json>(std::in_place,
                                 std::move(body["response_format"]["json_schema"]["schema"]));
    }
    fields.refuse("response_format", "'response_format.json_schema.schema' is required");
    return std::nullopt;
  }
  fields.refuse("response_format",
                "'response_format.type' must be text, json_object or json_schema");
  return std::nullopt;
}

// The fields have vLLM's names.
void read_continuation(JsonFields& fields, ChatRequest& request) {
  constexpr std::string_view kName = "continue_final_message";
  const std::optional<bool> adds = fields.boolean("add_generation_prompt");
  request.adds_generation_prompt = adds.value_or(true);
  request.continues_last = fields.boolean(kName).value_or(false);
  if (!request.continues_last) return;
  if (adds.value_or(false)) {
    fields.refuse(kName, "'continue_final_message' and 'add_generation_prompt' exclude each other");
  }
  check_continuation(fields, kName, request);
}

}  // namespace

void check_tool_choice(JsonFields& fields, const ToolChoice& choice, const Json& tools) {
  if (choice.kind == ToolChoice::Kind::kAuto) return;
  const bool is_named = choice.kind == ToolChoice::Kind::kNamed;
  if (tools.empty()) {
    fields.refuse("tool_choice", "'tool_choice' needs 'tools'");
  } else if (is_named && !has_tool(tools, choice.name)) {
    fields.refuse("tool_choice",
                  format_text("'tool_choice' names {}, which is not among 'tools'", choice.name));
  }
}

void check_demands(JsonFields& fields, const ChatRequest& request) {
  const bool has_grammar = !request.options.sampling.grammar.empty();
  if (has_grammar && request.response_schema) {
    fields.refuse("grammar", "'grammar' and 'response_format' exclude each other");
  }
  const bool must_call = request.tool_choice.kind != ToolChoice::Kind::kAuto;
  if (must_call && (has_grammar || request.response_schema)) {
    fields.refuse("tool_choice",
                  "'tool_choice' that demands a call and 'response_format' or 'grammar' exclude "
                  "each other");
  }
}

void check_continuation(JsonFields& fields, std::string_view name, const ChatRequest& request) {
  const Json& last = request.messages.back();
  const Json* calls = member(last, "tool_calls");
  if (*member(last, "role") != "assistant") {
    fields.refuse(name, format_text("'{}' needs a last message of the assistant", name));
  } else if (calls != nullptr && !calls->empty()) {
    fields.refuse(name, format_text("'{}': a message that calls tools is complete", name));
  }
  // The grammar would have to match the text that the message already has.
  if (request.response_schema || request.tool_choice.kind != ToolChoice::Kind::kAuto) {
    fields.refuse(name, format_text("an answer that goes on from a message ('{}') cannot be made "
                                    "to fit a schema or to call a tool",
                                    name));
  }
}

ApiResult<ChatRequest> read_chat_request(Json& body) {
  JsonFields fields(body);
  ChatRequest request{.options = read_generation_options(fields), .messages = {}};
  check_messages(fields);
  check_tools(fields);
  if (fields.error()) return std::unexpected(*fields.error());
  request.messages = take(body, "messages");
  request.tools = take(body, "tools");
  request.tool_choice = read_tool_choice(fields, request.tools);
  read_logprobs(fields, request.options.sampling);
  request.reasoning = read_reasoning(fields);
  request.retrieval = read_retrieval(fields);
  request.response_schema = read_response_format(fields, body);
  check_demands(fields, request);
  read_continuation(fields, request);
  if (const Json* variables = fields.object("chat_template_kwargs")) {
    if (variables->size() > kVariablesMax) {
      fields.refuse(
          "chat_template_kwargs",
          format_text("'chat_template_kwargs' must have at most {} members", kVariablesMax));
    }
    request.template_variables = take(body, "chat_template_kwargs");
  }
  if (fields.error()) return std::unexpected(*fields.error());
  return request;
}

}  // namespace slipstream
