#include "server/api/ollama_request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "server/api/ollama_messages.h"

namespace slipstream {
namespace {

constexpr std::int64_t kTokensAsked = std::int64_t{1} << 30;
constexpr std::int64_t kManyTokens = 1 << 20;  // as many as a sampler looks back at
constexpr std::chrono::seconds kForever = std::chrono::seconds::max();

// Fields of "options" that have the same name and meaning here.
constexpr std::string_view kSameOptions[] = {"temperature",
                                             "top_k",
                                             "top_p",
                                             "min_p",
                                             "typical_p",
                                             "repeat_penalty",
                                             "presence_penalty",
                                             "frequency_penalty",
                                             "seed",
                                             "stop"};

// The seconds of a unit; 0 if there is no such unit.
double seconds_of(std::string_view unit) {
  if (unit == "h") return 3600;
  if (unit == "m") return 60;
  if (unit == "s") return 1;
  if (unit == "ms") return 1e-3;
  if (unit == "us" || unit == "µs") return 1e-6;
  return unit == "ns" ? 1e-9 : 0;
}

// "1h30m", "300ms", "-1"; a number without a unit is one of seconds.
std::optional<double> parse_duration(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::string_view unit = text.substr(0, text.find_first_of("0123456789."));
    const double scale = unit.empty() && text.empty() ? 1 : seconds_of(unit);
    if (scale == 0) return std::nullopt;
    seconds += number * scale;
    text.remove_prefix(unit.size());
  }
  return is_negative ? -seconds : seconds;
}

// A word for how much, or whether at all.
ReasoningDemand read_think(JsonFields& fields) {
  ReasoningDemand demand;
  const Json* think = fields.any("think");
  if (think == nullptr) return demand;
  if (think->is_boolean()) {
    demand.is_on = think->get<bool>();
  } else {
    read_effort(fields, "think", demand);
  }
  return demand;
}

bool is_empty_text(const Json& json) {
  return json.is_string() && json.get_ref<const std::string&>().empty();
}

std::optional<Json> read_format(JsonFields& fields, Json& body) {
  const Json* format = fields.any("format");
  if (format == nullptr || is_empty_text(*format)) return std::nullopt;
  if (*format == "json") return std::optional<Json>(std::in_place, Json{{"type", "object"}});
  if (format->is_object()) return std::optional<Json>(std::in_place, take(body, "format"));
  fields.refuse("format", "'format' must be \"json\" or a JSON schema");
  return std::nullopt;
}

void read_options(JsonFields& fields, OllamaRequest& request) {
  static const Json kNone = Json::object();
  const Json* given = fields.object("options");
  const Json& options = given == nullptr ? kNone : *given;
  JsonFields theirs(options, "options");
  Json ours = Json::object();
  for (const std::string_view name : kSameOptions) {
    if (const Json* value = theirs.any(name)) ours[std::string(name)] = *value;
  }
  // -1 and -2 mean as many as fit; so does 0.
  const auto n_predict = theirs.integer("num_predict", -2, kTokensAsked);
  if (n_predict && *n_predict > 0) ours["max_tokens"] = *n_predict;
  constexpr int kWholeContext = -1;
  const auto n_last = theirs.integer("repeat_last_n", kWholeContext, kTokensAsked);
  if (n_last) ours["repeat_last_n"] = *n_last == kWholeContext ? kManyTokens : *n_last;
  request.n_context = theirs.integer("num_ctx", 0, kTokensAsked).value_or(0);
  if (theirs.integer("mirostat", 0, 2).value_or(0) != 0) {
    theirs.refuse("mirostat", "'options.mirostat' is not supported: use temperature and min_p");
  }
  JsonFields fields_of_ours(ours, "options");
  request.chat.options = read_generation_options(fields_of_ours);
  for (const JsonFields* read : {&theirs, &fields_of_ours}) {
    if (read->error()) fields.refuse(read->error()->param, read->error()->message);
  }
}

// What both kinds of bodies have.
OllamaRequest read_common(JsonFields& fields, Json& body) {
  OllamaRequest request;
  read_options(fields, request);
  GenerationOptions& options = request.chat.options;
  options.model = fields.text("model").value_or("");
  options.streams = fields.boolean("stream").value_or(true);
  options.may_shorten = true;
  request.keep_alive = read_keep_alive(fields);
  request.chat.reasoning = read_think(fields);
  if (fields.boolean("logprobs").value_or(false)) {
    fields.refuse("logprobs", "'logprobs' is not supported here: ask /v1/chat/completions");
  }
  request.chat.messages = Json::array();
  request.chat.response_schema = read_format(fields, body);
  return request;
}

// An assistant's last message that calls nothing is the beginning of the answer.
bool begins_an_answer(const Json& message) {
  const Json& content = message["content"];
  return message["role"] == "assistant" && !message.contains("tool_calls") &&
         !is_empty_text(content);
}

}  // namespace

std::optional<std::chrono::seconds> read_keep_alive(JsonFields& fields) {
  constexpr std::string_view kName = "keep_alive";
  const Json* value = fields.any(kName);
  if (value == nullptr) return std::nullopt;
  std::optional<double> seconds;
  if (value->is_number()) seconds = value->get<double>();
  if (value->is_string()) seconds = parse_duration(value->get_ref<const std::string&>());
  if (!seconds || !std::isfinite(*seconds)) {
    fields.refuse(kName, "'keep_alive' must be seconds or a duration, such as \"5m\"");
    return std::nullopt;
  }
  constexpr double kLongMax = 1e9;
  if (*seconds < 0 || *seconds > kLongMax) return kForever;
  return std::chrono::seconds(static_cast<std::int64_t>(std::ceil(*seconds)));
}

ApiResult<OllamaRequest> read_ollama_chat(Json& body) {
  JsonFields fields(body);
  OllamaRequest request = read_common(fields, body);
  (void)fields.array("messages");
  if (fields.error()) return std::unexpected(*fields.error());
  ApiResult<Json> messages = read_ollama_messages(take(body, "messages"));
  if (!messages) return std::unexpected(messages.error());
  ApiResult<Json> tools = read_ollama_tools(take(body, "tools"));
  if (!tools) return std::unexpected(tools.error());
  ChatRequest& chat = request.chat;
  chat.messages = std::move(*messages);
  chat.tools = std::move(*tools);
  check_demands(fields, chat);
  chat.continues_last = !chat.messages.empty() && begins_an_answer(chat.messages.back());
  if (chat.continues_last) check_continuation(fields, "messages", chat);
  if (fields.error()) return std::unexpected(*fields.error());
  return request;
}

ApiResult<OllamaRequest> read_ollama_generate(Json& body) {
  JsonFields fields(body);
  OllamaRequest request = read_common(fields, body);
  const std::string prompt = fields.text("prompt").value_or("");
  const std::string system = fields.text("system").value_or("");
  const bool is_raw = fields.boolean("raw").value_or(false);
  if (!fields.text("template").value_or("").empty()) {
    fields.refuse("template", "'template' is not supported: the model's own is used, or \"raw\"");
  }
  const std::string suffix = fields.text("suffix").value_or("");
  if (!suffix.empty() && (!system.empty() || request.chat.response_schema)) {
    fields.refuse("suffix", "'suffix' excludes 'system' and 'format'");
  }
  if (const Json* images = fields.array("images"); images != nullptr && !images->empty()) {
    fields.refuse("images", "'images' is for messages: send them to /api/chat");
  }
  if (const Json* context = fields.array("context"); context != nullptr && !context->empty()) {
    fields.refuse("context", "'context' is not supported: send the messages to /api/chat");
  }
  if (is_raw && !system.empty()) fields.refuse("system", "'system' and 'raw' exclude each other");
  if (is_raw && request.chat.response_schema) {
    fields.refuse("format", "'format' and 'raw' exclude each other");
  }
  check_demands(fields, request.chat);
  if (fields.error()) return std::unexpected(*fields.error());
  if (!suffix.empty()) {
    request.fill = FillIn{.prefix = prompt,
                          .line = {},
                          .suffix = suffix,
                          .extra = {},
                          .prefix_name = "prompt",
                          .suffix_name = "suffix"};
    return request;
  }
  if (is_raw) {
    if (!prompt.empty()) request.raw_prompt = prompt;
    return request;
  }
  if (prompt.empty()) return request;
  if (!system.empty()) request.chat.messages.push_back({{"role", "system"}, {"content", system}});
  request.chat.messages.push_back({{"role", "user"}, {"content", prompt}});
  return request;
}

}  // namespace slipstream
