// ChatTemplate: a model's own chat template, which turns a conversation into the prompt.
//
// Templates differ in what they know. What one does not is said in a way it does: tools are
// described in a system message, calls and their results become text, a system message goes into
// the first message of the user, the parts of a message are joined or made. What a template knows
// is found out by rendering small conversations once, when it is made.
//
// A template comes with a model from a stranger and sees what clients send: it is rendered within
// limits of steps, memory, depth and length (limits.h), and reaches nothing but its input. The
// prompt knows what of it clients wrote, which never becomes a control token (decision 011).
//
// Threads: immutable; render() may be called by several threads. It needs 1 MB of stack.
// Errors:  kInvalidArgument with the line for a template that cannot be read, and with the
//          template's own words for a conversation that it refuses.
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
  nlohmann::ordered_json tools = {};      // likewise; null or empty for none
  bool add_generation_prompt = true;      // ends where the assistant speaks
  nlohmann::ordered_json variables = {};  // for the template: {"enable_thinking": false}
  std::chrono::sys_seconds now = {};      // for templates that tell the date, as UTC
  // Messages that hold an answer just as the model wrote it: say_for() knows them.
  std::vector<std::size_t> answers = {};
  // Of the arguments of all calls, which a client may write as text.
  std::size_t n_argument_values_max = kJsonLimits.json_values_max;
};

// What a template does by itself.
struct TemplateAbilities {
  bool takes_system = false;
  bool takes_later_system = false;  // also behind the first message
  bool takes_tools = false;
  bool takes_calls = false;              // "tool_calls" of the assistant
  bool takes_results = false;            // messages of the role "tool"
  bool wants_parts = false;              // content as [{"type": "text", ...}]
  bool wants_arguments_as_text = false;  // of calls: JSON as OpenAI's API has it, not an object
  bool wants_no_content = false;         // beside calls: null, and not an empty text

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
  [[nodiscard]] const TemplateAbilities& abilities() const { return abilities_; }
  // How the model is going to answer.
  [[nodiscard]] const ChatFormat& format() const { return format_; }

 private:
  struct Syntax;
  ChatTemplate();
  // The input as it is, nothing said differently.
  [[nodiscard]] Result<MarkedText> render_plainly(ChatInput input, jinja::Budget& budget) const;
  void find_abilities();

  std::unique_ptr<const Syntax> syntax_;
  std::string bos_;
  std::string eos_;
  ChatFormat format_;
  TemplateAbilities abilities_;
  // What a past answer may hold as tokens: the markup of calls, where the template writes none.
  std::vector<std::string_view> answer_markup_;
};

}  // namespace slipstream
