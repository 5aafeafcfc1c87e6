#include "server/template/conversation.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/format.h"
#include "server/bounded_json.h"
#include "server/json.h"
#include "server/template/image_mark.h"

namespace slipstream {
namespace {

// Moves the content out of a message: a string as it is, the texts of its parts joined by line
// feeds, or "" for null. Marks of images join what is around them.
Result<std::string> take_content(Json& message) {
  const auto found = message.find("content");
  Json content = found == message.end() ? Json() : std::move(*found);
  if (content.is_null()) return std::string();
  if (content.is_string()) return std::move(content.get_ref<std::string&>());
  if (!content.is_array()) return fail(Code::kInvalidArgument, "a message's content is no text");
  std::string text;
  bool is_joined = true;  // without a line feed: at the beginning, and around images
  for (const Json& part : content) {
    const bool is_text = part.is_object() && part.contains("text") && part["text"].is_string();
    if (!is_text) {
      const std::string type =
          part.is_object() ? part.value("type", Json("?")).dump() : part.dump();
      return fail(
          Code::kInvalidArgument,
          format_text("a message has a part of type {}: only text and images (image_url) are "
                      "supported",
                      type));
    }
    const bool is_image = is_image_mark(part);
    if (!is_joined && !is_image) text += '\n';
    is_joined = is_image;
    text += part["text"].get_ref<const std::string&>();
  }
  return text;
}

// Mistral's templates accept only ids of nine letters and digits.
std::string nine_letters(std::string_view id) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: the same id always gives the same letters
  for (const char byte : id) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  std::string letters;
  for (int i = 0; i < 9; ++i) {
    letters += kLetters[hash % kLetters.size()];
    hash /= kLetters.size();
  }
  return letters;
}

bool is_nine_letters(std::string_view id) {
  if (id.size() != 9) return false;
  for (const char byte : id) {
    const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    if (!is_letter && !(byte >= '0' && byte <= '9')) return false;
  }
  return true;
}

constexpr std::string_view kToolsIntroduction =
    "You can call these tools. Each is described by a JSON object:\n";
constexpr std::string_view kToolsInstruction =
    "\nTo call a tool, write its name and arguments as JSON between these tags, and nothing after "
    "them:\n<tool_call>\n{\"name\": \"<name>\", \"arguments\": {<arguments>}}\n</tool_call>\n"
    "Several calls are written one after another. The results come in <tool_response> tags.";

std::string described(const Json& tools) {
  std::string text(kToolsIntroduction);
  for (const Json& tool : tools) {
    text += dump(tool.is_object() && tool.contains("function") ? tool["function"] : tool) + "\n";
  }
  return text + std::string(kToolsInstruction).substr(1);
}

// OpenAI's API lets a tool have no parameters. Templates read them without asking.
void add_parameters(Json& tools) {
  for (Json& tool : tools) {
    if (!tool.is_object() || !tool.contains("function") || !tool["function"].is_object()) continue;
    Json& parameters = tool["function"]["parameters"];
    if (parameters.is_null()) parameters = {{"type", "object"}, {"properties", Json::object()}};
  }
}

class Speaker {
 public:
  Speaker(ChatInput input, const TemplateAbilities& abilities, const ChatFormat& format)
      : input_(std::move(input)),
        abilities_(abilities),
        wants_nine_(format.tool_calls == ToolCallFamily::kMistral) {}

  Result<ChatInput> run() {
    if (!input_.messages.is_array() || input_.messages.empty()) {
      return fail(Code::kInvalidArgument, "a conversation needs at least one message");
    }
    const bool has_tools = input_.tools.is_array() && !input_.tools.empty();
    if (has_tools) add_parameters(input_.tools);
    const bool describes_tools = has_tools && !abilities_.takes_tools;
    if (describes_tools) pending_system_ = described(input_.tools);
    for (Json& message : input_.messages) {
      if (auto said = say(std::move(message)); !said) return std::unexpected(said.error());
    }
    flush_results();
    flush_held();
    flush_system();
    ChatInput result = std::move(input_);
    if (describes_tools) result.tools = Json();
    result.messages = std::move(messages_);
    result.answers = std::move(answers_);
    return result;
  }

 private:
  Result<void> say(Json said) {
    if (!said.is_object() || !said.contains("role") || !said["role"].is_string()) {
      return fail(Code::kInvalidArgument, "a message has no role");
    }
    Result<std::string> content = take_content(said);
    if (!content) return std::unexpected(content.error());
    const std::string role = said["role"].get<std::string>();
    if (role == "system" || role == "developer") {
      return say_system(*std::move(content), role, std::move(said));
    }
    if (role == "tool" && !abilities_.takes_results) {
      return say_user("<tool_response>\n" + *content + "\n</tool_response>", {{"role", "user"}},
                      true);
    }
    if (role == "user") return say_user(*std::move(content), std::move(said), false);
    flush_held();
    flush_system();
    if (role == "tool") {
      const bool has_id = said.contains("tool_call_id");
      if (!said.contains("name")) {
        const auto name = names_.find(has_id ? dump(said["tool_call_id"]) : "null");
        if (name != names_.end()) said["name"] = name->second;
      }
      if (has_id) fix_id(said["tool_call_id"]);
    }
    const bool has_calls = said.contains("tool_calls");
    if (has_calls) {
      if (auto calls = say_calls(said, *content); !calls) return calls;
    }
    alias_reasoning(said);
    push(std::move(said), std::move(*content), role == "assistant" && !has_calls);
    return {};
  }

  // Adds a system message, with the description of the tools if it is still pending.
  Result<void> say_system(std::string text, const std::string& role, Json said) {
    if (!pending_system_.empty()) text += "\n\n" + std::exchange(pending_system_, {});
    if (!abilities_.takes_system) {
      pending_system_ = std::move(text);
      return {};
    }
    if (!messages_.empty() && !abilities_.takes_later_system) {
      join_neighbour(text);
      return {};
    }
    if (role == "developer") said["role"] = "system";
    push(std::move(said), std::move(text));
    return {};
  }

  // Where a template takes a system message only as the first one: coding agents send more of them.
  // It joins the message before it or, behind an answer, what the user says next.
  void join_neighbour(const std::string& text) {
    flush_results();
    Json& last = messages_.back();
    if (last["role"] != "user" && last["role"] != "system") {
      held_ += held_.empty() ? text : "\n\n" + text;
      return;
    }
    Json& content = abilities_.wants_parts ? last["content"][0]["text"] : last["content"];
    content.get_ref<std::string&>() += "\n\n" + text;
  }

  // No user spoke after all.
  void flush_held() {
    if (!held_.empty()) push({{"role", "user"}}, std::exchange(held_, {}));
  }

  void flush_system() {
    if (pending_system_.empty()) return;
    std::string text = std::exchange(pending_system_, {});
    push({{"role", abilities_.takes_system ? "system" : "user"}}, std::move(text));
  }

  // Results that are told as the user's words become one message, because many templates
  // require alternating turns.
  Result<void> say_user(std::string text, Json said, bool is_result) {
    if (abilities_.takes_system) {
      flush_system();
    } else if (!pending_system_.empty()) {
      text = std::exchange(pending_system_, {}) + "\n\n" + text;
    }
    if (is_result) {
      if (!results_.empty()) results_ += '\n';
      results_ += text;
      return {};
    }
    if (!results_.empty()) text = std::exchange(results_, {}) + '\n' + text;
    if (!held_.empty()) text = std::exchange(held_, {}) + "\n\n" + text;
    push(std::move(said), std::move(text));
    return {};
  }

  Result<void> say_calls(Json& said, std::string& content) {
    if (said["tool_calls"].is_null() || said["tool_calls"].empty()) {
      said.erase("tool_calls");
      return {};
    }
    if (!said["tool_calls"].is_array()) {
      return fail(Code::kInvalidArgument, "\"tool_calls\" is no list");
    }
    const bool takes_calls =
        abilities_.takes_calls && (!abilities_.wants_no_content || content.empty());
    for (Json& call : said["tool_calls"]) {
      const bool has_name = call.is_object() && call.contains("function") &&
                            call["function"].is_object() && call["function"].contains("name") &&
                            call["function"]["name"].is_string();
      if (!has_name) return fail(Code::kInvalidArgument, "a tool call has no name");
      Json& function = call["function"];
      if (call.contains("id")) {
        names_[dump(call["id"])] = function["name"].get<std::string>();
        fix_id(call["id"]);
      }
      if (!function.contains("arguments")) function["arguments"] = Json::object();
      Json& arguments = function["arguments"];
      if (arguments.is_string() && !abilities_.wants_arguments_as_text) {
        if (auto read = read_arguments(arguments); !read) return read;
      } else if (!arguments.is_string() && abilities_.wants_arguments_as_text) {
        arguments = dump(arguments);
      }
      if (takes_calls) continue;
      if (!content.empty()) content += '\n';
      content += format_text("<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>",
                             dump(function["name"]), dump(arguments));
    }
    if (!takes_calls) said.erase("tool_calls");
    return {};
  }

  // Text that is not a JSON object stays text.
  Result<void> read_arguments(Json& arguments) {
    const std::string& text = arguments.get_ref<const std::string&>();
    Result<Json> parsed = text.empty() ? Json::object() : parse_bounded(text, argument_limits_);
    if (!parsed && parsed.error().code == Code::kUnsupported) {
      return fail(Code::kInvalidArgument,
                  format_text("the arguments of tool calls cannot be read as JSON: {} (all calls "
                              "together may have {} values)",
                              parsed.error().message, input_.n_argument_values_max));
    }
    if (!parsed || !parsed->is_object()) return {};
    argument_limits_.json_values_max -= n_values(*parsed);
    arguments = std::move(*parsed);
    return {};
  }

  // Templates use different names for the reasoning.
  static void alias_reasoning(Json& said) {
    const auto reasoning = said.find("reasoning_content");
    if (reasoning == said.end() || !reasoning->is_string()) return;
    const std::string text = reasoning->get<std::string>();
    for (const char* name : {"reasoning", "thinking"}) {
      if (!said.contains(name)) said[name] = text;
    }
  }

  void fix_id(Json& id) const {
    if (wants_nine_ && id.is_string() && !is_nine_letters(id.get<std::string>())) {
      id = nine_letters(id.get<std::string>());
    }
  }

  // All results are flushed at once: otherwise many small ones would be copied again for each.
  void flush_results() {
    if (results_.empty()) return;
    std::string text = std::exchange(results_, {});
    push({{"role", "user"}}, std::move(text));
  }

  void push(Json said, std::string content, bool is_answer = false) {
    flush_results();
    if (is_answer) answers_.push_back(messages_.size());
    if (abilities_.wants_no_content && said.contains("tool_calls")) {
      said["content"] = nullptr;
    } else if (abilities_.wants_parts) {
      said["content"] = Json::array({{{"type", "text"}, {"text", std::move(content)}}});
    } else {
      said["content"] = std::move(content);
    }
    messages_.push_back(std::move(said));
  }

  ChatInput input_;
  const TemplateAbilities& abilities_;
  const bool wants_nine_;
  JsonLimits argument_limits_{.json_values_max =
                                  input_.n_argument_values_max};  // what remains of the limit
  Json messages_ = Json::array();
  std::vector<std::size_t> answers_;          // indices in messages_: as the model wrote them
  std::map<std::string, std::string> names_;  // names of tools by the ids of their calls
  std::string held_;  // later system messages, to be said with the user's next words
  std::string pending_system_;
  std::string results_;  // results of tools, to be told as the user's words
};

}  // namespace

Result<ChatInput> say_for(ChatInput input, const TemplateAbilities& abilities,
                          const ChatFormat& format) {
  return Speaker(std::move(input), abilities, format).run();
}

}  // namespace slipstream
