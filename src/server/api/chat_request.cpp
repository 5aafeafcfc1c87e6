#include "server/api/chat_request.h"

#include <format>

#include "server/schema/schema_to_grammar.h"

namespace slipstream {
namespace {

constexpr int kTopLogprobsMax = 20;

void read_logprobs(JsonFields& fields, SamplingParams& sampling) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto n_top = fields.integer("top_logprobs", 0, kTopLogprobsMax);
  if (n_top && !wanted) fields.refuse("top_logprobs", "'top_logprobs' needs 'logprobs': true");
  if (wanted) sampling.n_top_logprobs = static_cast<int>(n_top.value_or(0));
}

// What a message must have before a template is asked. An assistant may have called tools instead.
Json read_messages(JsonFields& fields) {
  const Json* messages = fields.array("messages");
  if (messages == nullptr || messages->empty()) {
    fields.refuse("messages", "'messages' must be an array with at least one message");
    return Json::array();
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const std::string path = std::format("messages[{}]", i);
    const Json& message = (*messages)[i];
    if (!message.is_object() || !message.value("role", Json()).is_string()) {
      fields.refuse(path, std::format("'{}' must be an object with a role", path));
      break;
    }
    const bool has_content = !message.value("content", Json()).is_null();
    if (!has_content && message["role"] != "assistant") {
      fields.refuse(path + ".content", std::format("'{}.content' is required", path));
      break;
    }
  }
  return *messages;
}

Json read_tools(JsonFields& fields) {
  const Json* tools = fields.array("tools");
  const Json* choice = fields.any("tool_choice");
  if (tools == nullptr) {
    if (choice != nullptr && *choice != "none" && *choice != "auto") {
      fields.refuse("tool_choice", "'tool_choice' needs 'tools'");
    }
    return {};
  }
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    const bool is_function = tool.is_object() && tool.value("type", "") == "function" &&
                             tool.contains("function") && tool["function"].is_object() &&
                             tool["function"].value("name", Json()).is_string();
    if (!is_function) {
      fields.refuse("tools",
                    std::format("'tools[{}]' must be a function with a name, as in {{\"type\": "
                                "\"function\", \"function\": {{\"name\": ...}}}}",
                                i));
      return {};
    }
  }
  if (choice == nullptr || *choice == "auto") return *tools;
  if (*choice == "none") return {};
  fields.refuse("tool_choice",
                "'tool_choice' other than \"auto\" and \"none\" is not supported yet");
  return {};
}

// The grammar of "response_format".
std::string read_response_format(JsonFields& fields) {
  const Json* format = fields.object("response_format");
  if (format == nullptr) return {};
  JsonFields format_fields(*format, "response_format");
  const std::string type = format_fields.text("type").value_or("");
  if (type == "text") return {};
  if (type == "json_object") return grammar_of_any_object();
  if (type == "json_schema") {
    const Json* json_schema = format_fields.object("json_schema");
    const auto schema =
        json_schema == nullptr ? Json::const_iterator() : json_schema->find("schema");
    if (json_schema == nullptr || schema == json_schema->end()) {
      fields.refuse("response_format", "'response_format.json_schema.schema' is required");
      return {};
    }
    Result<std::string> grammar = grammar_of_schema(*schema);
    if (grammar) return std::move(*grammar);
    fields.refuse("response_format.json_schema.schema", grammar.error().message);
    return {};
  }
  fields.refuse("response_format",
                "'response_format.type' must be text, json_object or json_schema");
  return {};
}

}  // namespace

ApiResult<ChatRequest> read_chat_request(const Json& body) {
  JsonFields fields(body);
  ChatRequest request{.options = read_generation_options(fields),
                      .messages = read_messages(fields)};
  request.tools = read_tools(fields);
  read_logprobs(fields, request.options.sampling);
  if (std::string grammar = read_response_format(fields); !grammar.empty()) {
    if (!request.options.sampling.grammar.empty()) {
      fields.refuse("grammar", "'grammar' and 'response_format' exclude each other");
    }
    request.options.sampling.grammar = std::move(grammar);
  }
  if (const Json* variables = fields.object("chat_template_kwargs")) {
    request.template_variables = *variables;
  }
  if (fields.error()) return std::unexpected(*fields.error());
  return request;
}

}  // namespace slipstream
