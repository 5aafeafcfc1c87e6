#include "server/template/chat_template.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "base/format.h"
#include "server/json.h"
#include "server/template/continuation.h"
#include "server/template/conversation.h"
#include "server/template/jinja/interpreter.h"
#include "server/template/template_limits.h"

namespace slipstream {
namespace {

using jinja::Value;

Result<std::string> strftime_text(const std::string& format, std::chrono::sys_seconds now) {
  constexpr std::size_t kFormatMax = 128;
  std::array<char, 1024> buffer{};
  const std::time_t time = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  if (format.size() > kFormatMax || gmtime_r(&time, &parts) == nullptr) {
    return fail(Code::kInvalidArgument, "strftime_now() with a strange format");
  }
  const std::size_t n = std::strftime(buffer.data(), buffer.size(), format.c_str(), &parts);
  return std::string(buffer.data(), n);
}

Value strftime_now(std::chrono::sys_seconds now, jinja::Budget& budget) {
  return Value(std::make_shared<const std::function<Value(const jinja::Arguments&)>>(
      [now, &budget](const jinja::Arguments& arguments) {
        if (arguments.values.empty()) jinja::fail("strftime_now() needs a format");
        auto text = strftime_text(expect_text(arguments.values[0], "strftime_now()"), now);
        if (!text) jinja::fail(text.error().message);
        const Origin origin = arguments.values[0].marked()->origin();
        return Value::text(MarkedText(*std::move(text), origin), &budget);
      }));
}

// A role that every template knows counts as the template's text, not the client's: some templates
// write '<|' + role + '|>', which is one token.
bool is_known_role(std::string_view role) {
  constexpr std::string_view kRoles[] = {"system",    "developer", "user",
                                         "assistant", "tool",      "function"};
  return std::ranges::find(kRoles, role) != std::end(kRoles);
}

// The client's text, in which these texts count as the template's.
MarkedText marked_but(const std::string& text, const std::vector<std::string_view>& texts) {
  MarkedText marked;
  std::vector<std::size_t> next(texts.size(), 0);  // the next occurrence of each, from `at` on
  for (std::size_t at = 0;;) {
    std::size_t begin = text.npos;
    std::size_t end = text.npos;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (next[i] != text.npos && (next[i] < at || at == 0)) next[i] = text.find(texts[i], at);
      if (next[i] >= begin) continue;
      begin = next[i];
      end = begin + texts[i].size();
    }
    const std::string_view rest = std::string_view(text).substr(at);
    if (begin == text.npos) {
      marked.append(rest, Origin::kClient);
      return marked;
    }
    marked.append(rest.substr(0, begin - at), Origin::kClient);
    marked.append(rest.substr(begin - at, end - begin), Origin::kTemplate);
    at = end;
  }
}

Value answer_value(Json content, const std::vector<std::string_view>& markup,
                   jinja::Budget& budget) {
  if (content.is_string()) {
    return Value::text(marked_but(content.get_ref<const std::string&>(), markup), &budget);
  }
  Value parts = Value::from_json(std::move(content), Origin::kClient, budget, 2);
  if (parts.list() == nullptr) return parts;
  for (const Value& item : *parts.list()) {
    const auto* part = item.as<std::shared_ptr<jinja::Dict>>();
    if (part == nullptr) continue;
    for (auto& [key, value] : (*part)->items) {
      if (key == "text" && value.text() != nullptr) {
        value = Value::text(marked_but(*value.text(), markup), &budget);
      }
    }
  }
  return parts;
}

Value messages_value(ChatInput& input, const std::vector<std::string_view>& answer_markup,
                     jinja::Budget& budget) {
  Json& messages = input.messages;
  if (!messages.is_array()) {
    return Value::from_json(std::move(messages), Origin::kClient, budget);
  }
  std::vector<Value> values;
  values.reserve(messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    const bool is_answer = !answer_markup.empty() && std::ranges::binary_search(input.answers, i);
    Json answer = is_answer ? std::exchange(message["content"], Json()) : Json();
    Value value = Value::from_json(std::move(message), Origin::kClient, budget, 1);
    if (const auto* dict = value.as<std::shared_ptr<jinja::Dict>>(); dict != nullptr) {
      for (auto& [key, item] : (*dict)->items) {
        if (key == "role" && item.text() != nullptr && is_known_role(*item.text())) {
          item = Value::text(MarkedText(*item.text(), Origin::kTemplate), &budget);
        } else if (key == "content" && is_answer) {
          item = answer_value(std::exchange(answer, Json()), answer_markup, budget);
        }
      }
    }
    values.push_back(std::move(value));
  }
  return Value::list(std::move(values), budget);
}

}  // namespace

struct ChatTemplate::Syntax {
  jinja::Block block;
};

ChatTemplate::ChatTemplate() = default;
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::create(std::string_view source, std::string bos,
                                          std::string eos) {
  if (source.size() > kTemplateLimits.template_source_bytes_max) {
    return fail(Code::kInvalidArgument,
                format_text("a chat template of {} bytes is longer than the {} allowed",
                            source.size(), kTemplateLimits.template_source_bytes_max));
  }
  ChatTemplate chat;
  try {
    chat.syntax_ = std::make_unique<const Syntax>(Syntax{.block = jinja::parse(source)});
  } catch (const jinja::TemplateError& error) {
    return fail(Code::kInvalidArgument,
                format_text("the chat template cannot be read: {}", error.message));
  }
  chat.source_ = source;
  chat.bos_ = std::move(bos);
  chat.eos_ = std::move(eos);
  chat.format_ = detect_chat_format(source);
  chat.find_abilities();
  chat.find_reasoning_abilities();
  if (!chat.abilities_.takes_calls) chat.answer_markup_ = token_markup(chat.format_.tool_calls);
  return chat;
}

// Values are moved out of the input: keeping both would take many times the size of
// the client's text.
Result<MarkedText> ChatTemplate::render_plainly(ChatInput input, jinja::Budget& budget) const {
  try {
    std::vector<std::pair<std::string, Value>> globals;
    if (input.variables.is_object()) {
      for (auto& [key, value] : input.variables.get_ref<Json::object_t&>()) {
        globals.emplace_back(key, Value::from_json(std::move(value), Origin::kClient, budget));
      }
    }
    const auto set = [&globals](std::string_view name, Value value) {
      std::erase_if(globals, [&](const auto& global) { return global.first == name; });
      globals.emplace_back(name, std::move(value));
    };
    set("messages", messages_value(input, answer_markup_, budget));
    if (input.tools.is_array() && !input.tools.empty()) {
      set("tools", Value::from_json(std::move(input.tools), Origin::kClient, budget));
    } else {
      set("tools", Value(jinja::None{}));
    }
    set("add_generation_prompt", Value(input.add_generation_prompt));
    set("bos_token", Value::text(MarkedText(bos_, Origin::kTemplate), &budget));
    set("eos_token", Value::text(MarkedText(eos_, Origin::kTemplate), &budget));
    set("strftime_now", strftime_now(input.now, budget));
    return jinja::render(syntax_->block, std::move(globals), budget);
  } catch (const jinja::TemplateError& error) {
    return fail(Code::kInvalidArgument,
                format_text("the model's chat template {}: {}",
                            error.is_limit ? "cannot be rendered" : "refuses the conversation",
                            error.message));
  }
}

Result<MarkedText> ChatTemplate::render(ChatInput input) const {
  Result<ChatInput> said = say_for(std::move(input), abilities_, format_);
  if (!said) return std::unexpected(said.error());
  jinja::Budget budget;
  if (!said->continues_last) return render_plainly(std::move(*said), budget);
  const Result<std::string> last = text_to_continue(said->messages);
  if (!last) return std::unexpected(last.error());
  said->add_generation_prompt = false;
  const Result<MarkedText> whole = render_plainly(std::move(*said), budget);
  if (!whole) return whole;
  return cut_behind(*whole, *last);
}

// Renders small conversations with words that no template contains, and searches the
// prompts for them.
void ChatTemplate::find_abilities() {
  const auto end = jinja::Budget::latest_end();
  const auto says = [this, end](Json messages, Json tools, std::string_view text) {
    // The conversations are tiny. A template that needs more than this for one of them is hostile,
    // and so is one that takes longer for all of them than a render may take.
    jinja::Budget budget(std::size_t{1} << 18, std::size_t{16} << 20, end);
    const auto prompt = render_plainly({.messages = std::move(messages),
                                        .tools = std::move(tools),
                                        .add_generation_prompt = false},
                                       budget);
    return prompt && prompt->text().contains(text);
  };
  Json user = {{"role", "user"}, {"content", "probe-user"}};
  if (!says({user}, {}, "probe-user")) {
    const Json parts = Json::array({{{"type", "text"}, {"text", "probe-user"}}});
    const Json typed = {{"role", "user"}, {"content", parts}};
    abilities_.wants_parts = says({typed}, {}, "probe-user");
    if (abilities_.wants_parts) user = typed;
  }
  const auto content = [this](std::string_view text) {
    if (!abilities_.wants_parts) return Json(text);
    return Json::array({{{"type", "text"}, {"text", text}}});
  };
  const Json system = {{"role", "system"}, {"content", content("probe-system")}};
  abilities_.takes_system = says({system, user}, {}, "probe-system");
  abilities_.takes_later_system = abilities_.takes_system &&
                                  says({user, system}, {}, "probe-system") &&
                                  says({system, system, user}, {}, "probe-user");

  const Json tool = {
      {"type", "function"},
      {"function",
       {{"name", "probe_tool"},
        {"description", "A probe."},
        {"parameters",
         {{"type", "object"},
          {"properties", {{"probe_key", {{"type", "string"}, {"description", "A."}}}}},
          {"required", Json::array({"probe_key"})}}}}}};
  const Json tools = Json::array({tool});
  abilities_.takes_tools =
      says({user}, tools, "probe_tool") || says({system, user}, tools, "probe_tool");

  Json beside_calls = content("");
  const auto call = [&](const Json& arguments) {
    const Json function = {{"name", "probe_tool"}, {"arguments", arguments}};
    const Json calls =
        Json::array({{{"id", "probe0000"}, {"type", "function"}, {"function", function}}});
    return Json{{"role", "assistant"}, {"content", beside_calls}, {"tool_calls", calls}};
  };
  const Json object = {{"probe_key", "probe_value"}};
  const Json text = R"({"probe_key": "probe_value"})";
  const auto takes = [&](const Json& arguments, std::string_view needle) {
    return says({user, call(arguments)}, tools, needle);
  };
  // Some templates look for calls only if there is no content.
  if (!takes(object, "probe_value") && !takes(text, R"("probe_value")")) {
    beside_calls = nullptr;
    abilities_.wants_no_content = true;
  }
  const bool takes_object = takes(object, "probe_value");
  const bool takes_text = takes(text, R"("probe_value")");
  // If the template writes the object in Python's notation, it expects a string.
  const bool is_python = takes(object, "'probe_value'");
  abilities_.takes_calls = takes_object || takes_text;
  abilities_.wants_no_content = abilities_.wants_no_content && abilities_.takes_calls;
  abilities_.wants_arguments_as_text = takes_text && (!takes_object || is_python);
  const Json result = {{"role", "tool"},
                       {"tool_call_id", "probe0000"},
                       {"name", "probe_tool"},
                       {"content", content("probe-result")}};
  const Json asking = call(abilities_.wants_arguments_as_text ? text : object);
  abilities_.takes_results =
      abilities_.takes_calls && says({user, asking, result}, tools, "probe-result");
}

// Renders one conversation with different values of a variable: where the prompts differ, the
// template knows it.
void ChatTemplate::find_reasoning_abilities() {
  const auto end = jinja::Budget::latest_end();
  const Json content = abilities_.wants_parts
                           ? Json::array({{{"type", "text"}, {"text", "probe-user"}}})
                           : Json("probe-user");
  const Json messages = Json::array({{{"role", "user"}, {"content", content}}});
  const auto prompt = [&](Json variables) -> std::optional<std::string> {
    jinja::Budget budget(std::size_t{1} << 18, std::size_t{16} << 20, end);
    const auto text =
        render_plainly({.messages = messages, .variables = std::move(variables)}, budget);
    if (!text) return std::nullopt;
    return text->text();
  };
  const auto thinking = [](bool is_on) {
    return Json{{"enable_thinking", is_on}, {"thinking", is_on}};
  };
  const auto with = [&](const char* name, const Json& value) {
    Json variables = thinking(true);
    variables[name] = value;
    return prompt(std::move(variables));
  };
  abilities_.takes_thinking = prompt(thinking(true)) != prompt(thinking(false));
  abilities_.takes_budget = with("thinking_budget", 512) != with("thinking_budget", 1024);
  for (const std::string_view effort : kReasoningEfforts) {
    if (with("reasoning_effort", effort)) abilities_.efforts.push_back(effort);
  }
  abilities_.takes_effort = with("reasoning_effort", "low") != with("reasoning_effort", "high");
}

}  // namespace slipstream
