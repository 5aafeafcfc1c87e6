// ChatTemplate: a model's own chat template, which turns a conversation into the prompt. What a
// template does not support is expressed in a way that it does: tools go into a system message,
// calls and results become text, a system message goes into the first user message, parts are
// joined or made. Small conversations, rendered at creation, show what it supports.
//
// A template comes with a model from a stranger and sees what clients send. It is rendered within
// limits of steps, memory, depth and length (template_limits.h) and reaches nothing but its input.
// The prompt knows which parts clients wrote: they never become control tokens (decision 011).
//
// Threads: immutable; render() may be called by several threads. It needs 1 MB of stack.
// Errors:  kInvalidArgument with the line for a template that cannot be parsed, and with the
//          template's own message for a conversation that it refuses.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/text/marked_text.h"
#include "server/json_limits.h"
#include "server/output/chat_format.h"

namespace slipstream {

namespace jinja {
class Budget;
}

struct ChatInput {
  nlohmann::ordered_json messages;        // as in OpenAI's API, with "reasoning_content"
  nlohmann::ordered_json tools = {};      // also as in OpenAI's API; null or empty for none
  bool add_generation_prompt = true;      // the prompt ends where the assistant speaks
  bool continues_last = false;            // it ends in the last message, the assistant's, instead
  nlohmann::ordered_json variables = {};  // for the template: {"enable_thinking": false}
  std::chrono::sys_seconds now = {};      // for templates that write the date, in UTC
  // Indices of the messages that hold an answer exactly as the model wrote it. say_for() sets them.
  std::vector<std::size_t> answers = {};
  // How many JSON values the arguments of all calls together may have, also if sent as strings.
  std::size_t n_argument_values_max = kJsonLimits.json_values_max;
};

// What a template supports by itself.
struct TemplateAbilities {
  bool takes_system = false;
  bool takes_later_system = false;  // also behind the first message
  bool takes_tools = false;
  bool takes_calls = false;                    // "tool_calls" of the assistant
  bool takes_results = false;                  // messages of the role "tool"
  bool wants_parts = false;                    // content as [{"type": "text", ...}]
  bool wants_arguments_as_text = false;        // for calls: a string of JSON as in OpenAI's API
  bool wants_no_content = false;               // with calls: null rather than an empty string
  bool takes_thinking = false;                 // "enable_thinking" or "thinking" changes the prompt
  bool takes_effort = false;                   // "reasoning_effort" changes it
  bool takes_budget = false;                   // "thinking_budget" changes it
  std::vector<std::string_view> efforts = {};  // that it does not refuse, from least to most

  bool operator==(const TemplateAbilities&) const = default;
};

class ChatTemplate {
 public:
  // `bos` and `eos` are the texts of the tokens that begin and end a sequence.
  [[nodiscard]] static Result<ChatTemplate> create(std::string_view source, std::string bos,
                                                   std::string eos);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  [[nodiscard]] Result<MarkedText> render(ChatInput input) const;
  [[nodiscard]] const std::string& source() const { return source_; }
  [[nodiscard]] const TemplateAbilities& abilities() const { return abilities_; }
  // The format in which the model will answer.
  [[nodiscard]] const ChatFormat& format() const { return format_; }

 private:
  struct Syntax;
  ChatTemplate();
  // Renders the input as it is, without expressing anything differently.
  [[nodiscard]] Result<MarkedText> render_plainly(ChatInput input, jinja::Budget& budget) const;
  void find_abilities();
  void find_reasoning_abilities();

  std::unique_ptr<const Syntax> syntax_;
  std::string source_;
  std::string bos_;
  std::string eos_;
  ChatFormat format_;
  TemplateAbilities abilities_;
  // Markup of calls that a past answer may contain as tokens, if the template writes
  // no calls itself.
  std::vector<std::string_view> answer_markup_;
};

}  // namespace slipstream
