#include "server/api/responses_request.h"

#include <array>
#include <cstdint>
#include <utility>

#include "base/format.h"
#include "server/api/response_items.h"
#include "server/api/response_tools.h"
#include "server/api/responses_error.h"

namespace slipstream {
namespace {

constexpr std::int64_t kOutputTokensMax = std::int64_t{1} << 30;

struct Echoed {
  const char* name;
  const char* otherwise;  // the default, as JSON
};
constexpr std::array<Echoed, 19> kEchoed = {{
    {"background", "false"},
    {"instructions", "null"},
    {"max_output_tokens", "null"},
    {"max_tool_calls", "null"},
    {"metadata", "{}"},
    {"parallel_tool_calls", "true"},
    {"previous_response_id", "null"},
    {"prompt_cache_key", "null"},
    {"reasoning", R"({"effort":null,"summary":null})"},
    {"safety_identifier", "null"},
    {"store", "true"},
    {"temperature", "1.0"},
    {"text", R"({"format":{"type":"text"}})"},
    {"tool_choice", "\"auto\""},
    {"tools", "[]"},
    {"top_logprobs", "0"},
    {"top_p", "1.0"},
    {"truncation", "\"disabled\""},
    {"user", "null"},
}};

// Written as text at once, because JSON values take many times the memory.
std::string echo_of(const Json& body) {
  const JsonFields fields(body);
  std::string echo;
  for (const Echoed& field : kEchoed) {
    const Json* value = fields.any(field.name);
    echo += format_text("{}\"{}\":{}", echo.empty() ? "" : ",", field.name,
                        value == nullptr ? field.otherwise : dump(*value));
  }
  return echo;
}

// Refuses what this server cannot do if that would change the answer. Other fields are only checked
// for their type.
void check_response_fields(JsonFields& fields) {
  if (fields.boolean("background").value_or(false)) {
    fields.refuse("background", "'background' is not supported: stream the answer instead");
  }
  for (const char* name : {"conversation", "prompt"}) {
    if (fields.any(name) == nullptr) continue;
    fields.refuse(name, format_text("'{}' is not supported: send 'input' and "
                                    "'previous_response_id' instead",
                                    name));
  }
  for (const char* name : {"metadata", "reasoning", "text"}) (void)fields.object(name);
  for (const char* name :
       {"prompt_cache_key", "safety_identifier", "truncation", "user", "service_tier"}) {
    (void)fields.text(name);
  }
  (void)fields.array("include");
  (void)fields.integer("max_output_tokens", 1, kOutputTokensMax);
  (void)fields.integer("max_tool_calls", 0, kOutputTokensMax);
  (void)fields.integer("top_logprobs", 0, kTopLogprobsMax);
}

// Returns "text.format", which is flat, as "response_format".
ApiResult<Json> read_text_format(Json& body) {
  const auto text = body.find("text");
  if (text == body.end() || !text->is_object()) return Json();
  Json format = take(*text, "format");
  if (format.is_null()) return Json();
  if (!format.is_object()) return refuse("text.format", "'text.format' must be an object");
  const Json* type = member(format, "type");
  if (type == nullptr || *type != "json_schema") return format;
  Json schema = take(format, "schema");
  if (schema.is_null()) return refuse("text.format", "'text.format.schema' is required");
  return Json{{"type", "json_schema"}, {"json_schema", {{"schema", std::move(schema)}}}};
}

// "reasoning.effort" is "reasoning_effort" in the chat API.
ApiResult<void> add_effort(Json& body) {
  const Json* reasoning = member(body, "reasoning");
  if (reasoning == nullptr || !reasoning->is_object()) return {};
  JsonFields fields(*reasoning, "reasoning");
  const auto effort = fields.text("effort");
  if (fields.error()) return std::unexpected(*fields.error());
  if (effort) body["reasoning_effort"] = *effort;
  return {};
}

// Replaces an item_reference by the item that it names.
ApiResult<void> resolve(Json& item, const std::string& path, PastResponses& past) {
  const Json* type = member(item, "type");
  if (type == nullptr || *type != "item_reference") return {};
  const Json* id = member(item, "id");
  if (id == nullptr || !id->is_string()) {
    return refuse(path + ".id", format_text("'{}.id' must be a string", path));
  }
  const auto& name = id->get_ref<const std::string&>();
  Json found = past.item(name);
  if (found.is_null()) {
    return refuse(path + ".id",
                  format_text("'{}' refers to '{}', which this server does not have (any more): "
                              "send the item itself",
                              path, quotable(name)));
  }
  item = std::move(found);
  return {};
}

struct Items {
  Json all = Json::array();
  std::size_t n_past = 0;  // how many come first and are from the store
};

ApiResult<Items> read_past(JsonFields& fields, PastResponses& past) {
  const auto previous = fields.text("previous_response_id");
  if (fields.error()) return std::unexpected(*fields.error());
  if (!previous) return Items{};
  Json conversation = past.conversation(*previous);
  if (conversation.is_null()) {
    return std::unexpected(
        ApiError{.message = format_text("Previous response with id '{}' not found: it was not "
                                        "stored, is older than what is kept, or is another "
                                        "client's. Send the whole conversation as 'input'",
                                        quotable(*previous)),
                 .param = "previous_response_id",
                 .code = "previous_response_not_found"});
  }
  const std::size_t n_past = conversation.size();
  return Items{.all = std::move(conversation), .n_past = n_past};
}

// The stored conversation, then the new items.
ApiResult<Items> read_items(JsonFields& fields, Json& body, PastResponses& past) {
  ApiResult<Items> items = read_past(fields, past);
  if (!items) return items;
  Json input = take(body, "input");
  if (input.is_string()) {
    items->all.push_back({{"type", "message"}, {"role", "user"}, {"content", std::move(input)}});
    return items;
  }
  if (!input.is_array() || (input.empty() && items->n_past == 0)) {
    return refuse("input", "'input' must be a string or an array with at least one item");
  }
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (auto known = resolve(input[i], format_text("input[{}]", i), past); !known) {
      return std::unexpected(known.error());
    }
    // Only OpenAI can read it, so it is not worth storing.
    if (input[i].is_object()) input[i].erase("encrypted_content");
    items->all.push_back(std::move(input[i]));
  }
  return items;
}

ApiResult<Json> to_messages(Items items, const std::string& instructions) {
  ItemMessages messages;
  for (std::size_t i = 0; i < items.all.size(); ++i) {
    const std::string path =
        i < items.n_past ? "previous_response_id" : format_text("input[{}]", i - items.n_past);
    if (auto added = messages.add(items.all[i], path); !added) {
      return std::unexpected(added.error());
    }
  }
  Json all = messages.take_all();
  if (!instructions.empty()) {
    all.insert(all.begin(), Json{{"role", "system"}, {"content", instructions}});
  }
  return all;
}

void set(Json& body, const char* name, Json value) {
  if (value.is_null() && !body.contains(name)) return;
  body[name] = std::move(value);
}

// Rewrites the fields into those of the chat API.
ApiResult<ResponseTools> make_chat_body(Json& body) {
  ApiResult<Json> format = read_text_format(body);
  if (!format) return std::unexpected(format.error());
  if (auto added = add_effort(body); !added) return std::unexpected(added.error());
  ApiResult<ResponseTools> tools = read_response_tools(take(body, "tools"));
  if (!tools) return tools;
  ApiResult<Json> choice = read_response_tool_choice(take(body, "tool_choice"), *tools);
  if (!choice) return std::unexpected(choice.error());
  // These fields of the chat API do not exist in the Responses API.
  for (const char* name :
       {"n", "max_completion_tokens", "stream_options", "logprobs", "top_logprobs"}) {
    set(body, name, nullptr);
  }
  set(body, "max_tokens", take(body, "max_output_tokens"));
  set(body, "tools", tools->functions.empty() ? Json() : std::move(tools->functions));
  set(body, "tool_choice", std::move(*choice));
  set(body, "response_format", std::move(*format));
  return tools;
}

}  // namespace

ApiResult<ResponsesRequest> read_responses_request(Json& body, PastResponses& past) {
  JsonFields fields(body);
  check_response_fields(fields);
  const std::string instructions = fields.text("instructions").value_or("");
  const bool stores = fields.boolean("store").value_or(true);
  if (fields.error()) return std::unexpected(*fields.error());
  ResponsesRequest request;
  request.echo = echo_of(body);

  ApiResult<Items> items = read_items(fields, body, past);
  if (!items) return std::unexpected(items.error());
  if (stores) request.items = dump(items->all);
  ApiResult<Json> messages = to_messages(std::move(*items), instructions);
  if (!messages) return std::unexpected(messages.error());
  ApiResult<ResponseTools> tools = make_chat_body(body);
  if (!tools) return std::unexpected(tools.error());
  request.tool_paths = std::move(tools->paths);
  request.spaces = std::move(tools->spaces);
  set(body, "messages", std::move(*messages));
  ApiResult<ChatRequest> chat = read_chat_request(body);
  if (!chat) return std::unexpected(in_words_of_responses(chat.error(), request.tool_paths));
  request.chat = std::move(*chat);
  request.chat.options.may_shorten = true;
  return request;
}

}  // namespace slipstream
