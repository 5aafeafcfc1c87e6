#include "server/demand/call_markup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/format.h"
#include "server/ascii.h"
#include "server/bounded_json.h"
#include "server/json.h"
#include "server/output/chat_answer.h"
#include "server/output/output_parser.h"

namespace slipstream {
namespace {

using Texts = std::vector<std::string>;

// Words that no template contains. The keys are in alphabetical order because some
// templates sort them.
constexpr std::string_view kSaidByUser = "probe-user";
constexpr std::string_view kName = "probe_tool";
constexpr std::string_view kText = "probe-value";
constexpr std::string_view kNumber = "7781";
constexpr std::string_view kFirstKey = "probe_a";
constexpr std::string_view kLastKey = "probe_b";
Json text_then_number() { return {{kFirstKey, kText}, {kLastKey, 7781}}; }
Json number_then_text() { return {{kFirstKey, 7781}, {kLastKey, kText}}; }

constexpr int kIds = 3;  // the number of calls in one answer
// Mistral's templates require nine letters.
std::string probe_id(int i) { return std::string(9, static_cast<char>('a' + i)); }

// The form that conversation.cpp describes to the model.
CallMarkup described_by_us() {
  return {.before_name = "<tool_call>\n{\"name\": \"",
          .after_name = "\", \"arguments\": ",
          .between = "}\n</tool_call>\n<tool_call>\n{\"name\": \"",
          .after_last = "}\n</tool_call>"};
}

// Granite 3: <|tool_call|>[{"name": "f", "arguments": {...}}]
CallMarkup list_after_token() {
  return {.before_name = "<|tool_call|>[{\"name\": \"",
          .after_name = "\", \"arguments\": ",
          .between = "}, {\"name\": \"",
          .after_last = "}]"};
}

// LFM: <|tool_call_start|>[f(p="...")]<|tool_call_end|>
CallMarkup python_list() {
  return {.before_name = "<|tool_call_start|>[",
          .after_name = "",
          .between = ", ",
          .after_last = "]<|tool_call_end|>",
          .members = MemberMarkup{.first = "(",
                                  .next = ", ",
                                  .close = ")",
                                  .close_empty = "()",
                                  .json_open = "=",
                                  .text_open = "=",
                                  .text_close = "",
                                  .text_end = ""}};
}

const XmlSyntax* xml_of(const ToolCallFormat& format) {
  for (const CallOpening& opening : format.openings) {
    if (opening.xml != nullptr) return opening.xml;
  }
  return nullptr;
}

bool reads_described_calls(const ToolCallFormat& format) {
  return std::ranges::any_of(format.openings, [](const CallOpening& opening) {
    return opening.text == "<tool_call>" && opening.json != nullptr;
  });
}

// The position of the first occurrence of any of the texts.
std::size_t find_first(std::string_view text, const std::vector<std::string_view>& wanted) {
  std::size_t first = text.npos;
  for (const std::string_view one : wanted) first = std::min(first, text.find(one));
  return first;
}

// The length of the text that is already in the prompt. It never ends inside a tag, because many
// tags begin alike.
std::size_t length_in_common(std::string_view text, std::string_view prompt) {
  const auto n = static_cast<std::size_t>(std::ranges::mismatch(text, prompt).in1 - text.begin());
  const std::string_view common = text.substr(0, n);
  const std::size_t said = common.rfind(kSaidByUser);
  const std::size_t tag = common.rfind('<');
  const bool is_part = tag != common.npos && (said == common.npos || tag > said) &&
                       common.find('>', tag) == common.npos;
  return is_part ? tag : n;
}

void replace_all(std::string& text, std::string_view from, char to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; ++at) {
    text.replace(at, from.size(), 1, to);
  }
}

// Merges two texts that differ at most in a number.
std::optional<std::string> merged(const std::string& a, const std::string& b) {
  if (a == b) return a;
  const auto n_start = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  std::size_t n_end = 0;
  while (n_end < std::min(a.size(), b.size()) - n_start &&
         a[a.size() - 1 - n_end] == b[b.size() - 1 - n_end]) {
    ++n_end;
  }
  const auto is_number = [&](std::string_view text) {
    text = text.substr(n_start, text.size() - n_start - n_end);
    return !text.empty() && std::ranges::all_of(text, is_digit);
  };
  if (!is_number(a) || !is_number(b)) return std::nullopt;
  return a.substr(0, n_start) + kAnyNumber + a.substr(a.size() - n_end);
}

// The JSON object around the first key at or after `start`.
std::optional<std::string_view> json_around_key(std::string_view text, std::size_t start) {
  const std::size_t key = text.find(kFirstKey, start);
  if (key == text.npos) return std::nullopt;
  const std::size_t open = text.rfind('{', key);
  const std::size_t close = text.find('}', key);
  if (open == text.npos || open < start || close == text.npos) return std::nullopt;
  const std::string_view object = text.substr(open, close + 1 - open);
  if (!Json::accept(object)) return std::nullopt;
  return object;
}

// The length of `text` up to where the brackets opened in `before` are closed; nullopt if they
// are not closed.
std::optional<std::size_t> end_of_brackets(std::string_view before, std::string_view text) {
  int n_open = 0;
  bool is_quoted = false;
  const auto take = [&](char byte) {
    if (byte == '"') is_quoted = !is_quoted;
    if (is_quoted) return;
    if (byte == '{' || byte == '[') ++n_open;
    if (byte == '}' || byte == ']') --n_open;
  };
  for (const char byte : before) take(byte);
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (n_open <= 0) return i;
    if (i < text.size()) take(text[i]);
  }
  return std::nullopt;
}

// The parts of calls as a template wrote them.
struct Slices {
  Texts before_name;  // of each call; for later calls, from the end of the previous one
  Texts after_name;
  Texts arguments;
  std::string rest;
};

class Learner {
 public:
  explicit Learner(const ChatTemplate& chat)
      : chat_(chat), row_(tool_call_format(chat.format().tool_calls)), xml_(xml_of(row_)) {
    if (row_.family == ToolCallFamily::kGemma4) {
      call_end_ = "}";
      text_end_ = "<|\"|>";
    }
    if (xml_ != nullptr) {
      call_end_ = xml_->call_close;
      text_end_ = xml_->value_close;
    }
  }

  std::optional<CallMarkup> run() {
    const auto prompt = chat_.render({.messages = conversation({}), .tools = tools()});
    if (!prompt) return std::nullopt;
    prompt_ = prompt->text();
    const std::optional<Slices> one = slices({text_then_number()});
    if (!one) return std::nullopt;
    CallMarkup markup{.before_name = one->before_name[0],
                      .after_name = one->after_name[0],
                      .after_last = one->rest};
    if (has_members()) {
      markup.members = members(one->arguments[0]);
      if (!markup.members) return std::nullopt;
    }
    learn_several(markup);
    return markup;
  }

 private:
  [[nodiscard]] bool has_members() const { return !call_end_.empty(); }

  static Json tools() {
    const Json text_or_number = {{"type", Json::array({"string", "number"})}};
    const Json parameters = {
        {"type", "object"},
        {"properties", {{kFirstKey, text_or_number}, {kLastKey, text_or_number}}}};
    return Json::array(
        {{{"type", "function"},
          {"function",
           {{"name", kName}, {"description", "A probe."}, {"parameters", parameters}}}}});
  }

  [[nodiscard]] Json conversation(const std::vector<Json>& arguments) const {
    Json messages = Json::array({{{"role", "user"}, {"content", kSaidByUser}}});
    if (arguments.empty()) return messages;
    Json calls = Json::array();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      // Kimi's templates write only the id, which the model makes from the name.
      const bool id_has_name = row_.family == ToolCallFamily::kKimi;
      const std::string id =
          id_has_name ? format_text("functions.{}:{}", kName, i) : probe_id(static_cast<int>(i));
      calls.push_back({{"id", id},
                       {"type", "function"},
                       {"function", {{"name", kName}, {"arguments", arguments[i].dump()}}}});
    }
    messages.push_back({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", calls}});
    return messages;
  }

  // What the model would have written: calls with these arguments, and everything that follows.
  [[nodiscard]] std::optional<std::string> answer(const std::vector<Json>& arguments) const {
    const auto text = chat_.render(
        {.messages = conversation(arguments), .tools = tools(), .add_generation_prompt = false});
    if (!text) return std::nullopt;
    std::string rest = text->text().substr(length_in_common(text->text(), prompt_));
    // An empty thought may precede the calls.
    std::vector<std::string_view> markers(row_.silent.begin(), row_.silent.end());
    for (const CallOpening& opening : row_.openings) markers.push_back(opening.text);
    const std::size_t start = find_first(rest, markers);
    const bool opens_calls = !row_.openings.empty() && start < rest.find(kName);
    if (opens_calls) rest.erase(0, start);
    return rest;
  }

  // Returns nullopt if the calls are missing or OutputParser does not find them.
  [[nodiscard]] std::optional<Slices> slices(const std::vector<Json>& arguments) const {
    const std::optional<std::string> text = answer(arguments);
    if (!text) return std::nullopt;
    Slices slices;
    std::size_t at = 0;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::size_t name = text->find(kName, at);
      if (name == text->npos) return std::nullopt;
      const std::size_t after = name + kName.size();
      const std::optional<std::string_view> found = find_arguments(*text, after);
      if (!found) return std::nullopt;
      const auto start = static_cast<std::size_t>(found->data() - text->data());
      slices.before_name.push_back(marked(text->substr(at, name - at)));
      slices.after_name.push_back(marked(text->substr(after, start - after)));
      slices.arguments.emplace_back(*found);
      at = start + found->size();
    }
    const std::optional<std::size_t> n_rest = length_of_markup(*text, at);
    if (!n_rest) return std::nullopt;
    slices.rest = marked(text->substr(at, *n_rest));
    if (!reads(text->substr(0, at + *n_rest), arguments)) return std::nullopt;
    return slices;
  }

  [[nodiscard]] std::optional<std::string_view> find_arguments(std::string_view text,
                                                               std::size_t start) const {
    if (!has_members()) return json_around_key(text, start);
    const std::size_t end = text.find(call_end_, start);
    if (end == text.npos) return std::nullopt;
    return text.substr(start, end + call_end_.size() - start);
  }

  static std::string marked(std::string text) {
    for (int i = 0; i < kIds; ++i) replace_all(text, probe_id(i), kAnyId);
    return text;
  }

  // How much of the text after the last arguments (at `at`) belongs to the calls.
  [[nodiscard]] std::optional<std::size_t> length_of_markup(std::string_view text,
                                                            std::size_t at) const {
    std::string_view rest = text.substr(at);
    std::size_t end = 0;
    if (!has_members()) {
      const std::optional<std::size_t> n = end_of_brackets(text.substr(0, at), rest);
      if (!n) return std::nullopt;
      end = *n;
    }
    const std::vector<std::string_view> all = closings();
    while (true) {
      std::size_t next = end;
      while (next < rest.size() && is_space(rest[next])) ++next;
      const auto closing = std::ranges::find_if(all, [&](std::string_view one) {
        return !one.empty() && rest.substr(next).starts_with(one);
      });
      if (closing == all.end()) return end;
      end = next + closing->size();
    }
  }

  [[nodiscard]] std::vector<std::string_view> closings() const {
    std::vector<std::string_view> all(row_.silent.begin(), row_.silent.end());
    all.emplace_back("```");
    for (const CallOpening& opening : row_.openings) {
      if (opening.json != nullptr) all.push_back(opening.json->close);
      if (opening.xml != nullptr) all.push_back(opening.xml->section_close);
      if (opening.named != nullptr) all.push_back(opening.named->close);
      if (opening.python != nullptr) all.push_back(opening.python->close);
    }
    return all;
  }

  // `text_first` is text_then_number() as the template wrote it.
  [[nodiscard]] std::optional<MemberMarkup> members(std::string_view text_first) const {
    const std::optional<Slices> number_first = slices({number_then_text()});
    const std::optional<Slices> none = slices({Json::object()});
    if (!number_first || !none) return std::nullopt;
    const std::optional<Texts> a = around(text_first, kText, kNumber);
    const std::optional<Texts> b = around(number_first->arguments[0], kNumber, kText);
    if (!a || !b || (*a)[0] != (*b)[0]) return std::nullopt;
    MemberMarkup markup{.first = (*a)[0],
                        .next = (*b)[2],
                        .close = (*a)[4],
                        .close_empty = none->arguments[0],
                        .json_open = (*a)[3],
                        .text_open = (*a)[1],
                        .text_close = "",
                        .text_end = std::string(text_end_)};
    const std::string& after_text = (*a)[2];
    if (!after_text.ends_with(markup.next)) return std::nullopt;
    markup.text_close = after_text.substr(0, after_text.size() - markup.next.size());
    if ((*b)[4] != markup.text_close + markup.close) return std::nullopt;
    return markup;
  }

  // The texts before, between and after the keys and values.
  static std::optional<Texts> around(std::string_view text, std::string_view first_value,
                                     std::string_view last_value) {
    Texts all;
    for (const std::string_view word : {kFirstKey, first_value, kLastKey, last_value}) {
      const std::size_t at = text.find(word);
      if (at == text.npos) return std::nullopt;
      all.emplace_back(text.substr(0, at));
      text.remove_prefix(at + word.size());
    }
    all.emplace_back(text);
    return all;
  }

  // Three calls show what is numbered in all of them, and that there are no other differences.
  void learn_several(CallMarkup& markup) const {
    const std::vector<Json> arguments(kIds, text_then_number());
    const std::optional<Slices> three = slices(arguments);
    if (!three) return;
    const std::optional<std::string> between = merged(three->before_name[1], three->before_name[2]);
    const std::optional<std::string> after_name =
        merged(three->after_name[0], three->after_name[1]);
    const bool fits = between && after_name && three->before_name[0] == markup.before_name &&
                      three->rest == markup.after_last;
    if (!fits) return;
    markup.between = between;
    markup.after_name = *after_name;
  }

  // Whether OutputParser finds these calls in the text, and nothing else.
  [[nodiscard]] bool reads(std::string_view text, const std::vector<Json>& arguments) const {
    OutputParser parser({.format = chat_.format(), .tools = ToolSet(tools())});
    ChatAnswer read;
    read.add(parser.push(text));
    read.add(parser.finish());
    if (!read.content.empty() || read.calls.size() != arguments.size()) return false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const ChatAnswer::Call& call = read.calls[i];
      const Result<Json> said = parse_bounded(call.arguments);
      if (!call.complete || call.name != kName || !said || *said != arguments[i]) return false;
    }
    return true;
  }

  const ChatTemplate& chat_;
  const ToolCallFormat& row_;
  const XmlSyntax* xml_;
  std::string_view call_end_;  // ends a call with arguments one by one; else empty
  std::string_view text_end_;
  std::string prompt_;
};

}  // namespace

Result<CallMarkup> call_markup_of(const ChatTemplate& chat) {
  if (chat.abilities().takes_calls) {
    if (std::optional<CallMarkup> learned = Learner(chat).run()) return *std::move(learned);
  }
  const ToolCallFamily family = chat.format().tool_calls;
  if (chat.abilities().takes_tools) {
    if (family == ToolCallFamily::kLfm) return python_list();
    if (family == ToolCallFamily::kToolCallToken) return list_after_token();
  }
  if (reads_described_calls(tool_call_format(family))) return described_by_us();
  return fail(Code::kUnsupported,
              format_text("the model's chat template does not show how it writes tool calls ({})",
                          name(family)));
}

}  // namespace slipstream
