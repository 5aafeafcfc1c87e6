// For tests of demanded calls: tools, small templates, a vocabulary, and which answers
// a grammar accepts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "engine/sampling/grammar_matcher.h"
#include "server/demand/call_grammar.h"
#include "server/json.h"
#include "server/output/chat_answer.h"
#include "server/output/output_parser.h"

namespace slipstream {

// Keys are in alphabetical order because some templates sort them.
inline const Json kTools = Json::parse(R"([
  {"type": "function", "function": {"name": "get_weather", "description": "Tells the weather.",
    "parameters": {"type": "object", "additionalProperties": false, "required": ["city", "days"],
      "properties": {
        "city": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "exact": {"type": "boolean"},
        "place": {"type": "object", "additionalProperties": false, "required": ["x"],
                  "properties": {"x": {"type": "number"}, "y": {"type": "string"}}},
        "tags": {"type": "array", "items": {"enum": ["a", "</b\"c"]}, "maxItems": 2},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "when": {"anyOf": [{"type": "string", "maxLength": 4}, {"type": "null"}]}}}}},
  {"type": "function", "function": {"name": "get-time", "description": "Tells the time.",
    "parameters": {"type": "object", "additionalProperties": false,
      "properties": {"zone": {"type": "string", "pattern": "^[A-Z]{2,3}$"}}}}}])");

inline ChatTemplate chat_of(std::string_view source) {
  Result<ChatTemplate> chat = ChatTemplate::create(source, "<bos>", "<eos>");
  SLIP_CHECK(chat.has_value(), "a template that cannot be read");
  return std::move(*chat);
}

inline const Json kUser = {{"role", "user"}, {"content", "Hello?"}};

inline std::string prompt_of(const ChatTemplate& chat) {
  const auto prompt = chat.render({.messages = Json::array({kUser}), .tools = kTools});
  return prompt ? prompt->text() : "";
}

// All single bytes, the family's markup as longer tokens, and a token that ends answers.
class Words {
 public:
  // `are_special`: the markup consists of special tokens rather than ordinary long ones.
  Words(const ChatFormat& format, bool are_special) : are_special_(are_special) {
    for (int byte = 0; byte < 256; ++byte) pieces_.emplace_back(1, static_cast<char>(byte));
    const ToolCallFormat& row = tool_call_format(format.tool_calls);
    for (const std::string_view text : row.silent) add(text);
    for (const CallOpening& opening : row.openings) {
      add(opening.text);
      if (opening.json != nullptr) add(opening.json->close);
      if (opening.named != nullptr) add(opening.named->close);
      if (opening.python != nullptr) add(opening.python->close);
      if (opening.xml == nullptr) continue;
      for (const std::string_view text :
           {opening.xml->value_close, opening.xml->call_close, opening.xml->section_close}) {
        add(text);
      }
    }
    add(reasoning_tags(format.reasoning).open);
    add(reasoning_tags(format.reasoning).close);
    for (const char* text : {"<|channel|>", "<|start|>", "<|\"|>"}) add(text);
    std::vector<Token> ends = {0};
    for (std::size_t i = 257; i < pieces_.size(); ++i) {
      if (are_special && is_end(pieces_[i])) ends.push_back(static_cast<Token>(i));
    }
    token_pieces_.emplace(pieces_, ends);
  }

  [[nodiscard]] const TokenPieces& pieces() const { return *token_pieces_; }
  [[nodiscard]] bool is_long(std::size_t token) const { return token > 256; }

  [[nodiscard]] std::vector<MarkupToken> tokens_in(std::string_view text) const {
    std::vector<MarkupToken> tokens;
    while (are_special_ && !text.empty()) {
      std::size_t n_longest = 0;
      for (std::size_t i = 257; i < pieces_.size(); ++i) {
        if (!text.starts_with(pieces_[i]) || pieces_[i].size() <= n_longest) continue;
        if (n_longest > 0) tokens.pop_back();
        n_longest = pieces_[i].size();
        tokens.push_back({pieces_[i], static_cast<Token>(i), is_end(pieces_[i])});
      }
      text.remove_prefix(std::max<std::size_t>(n_longest, 1));
    }
    return tokens;
  }

 private:
  static bool is_end(std::string_view text) {
    return text == "<|call|>" || text == "<|eom_id|>" || text == "<|calls|>";
  }
  void add(std::string_view text) {
    const bool is_markup = text.size() > 1 && text.find('\n') == text.npos;
    if (is_markup && !std::ranges::contains(pieces_, text)) pieces_.emplace_back(text);
  }

  bool are_special_;
  std::vector<std::string> pieces_ = {""};
  std::optional<TokenPieces> token_pieces_;
};

inline GrammarMatcher matcher_of(const std::string& text, const Words& words) {
  Result<Grammar> grammar = Grammar::parse(text, static_cast<int>(words.pieces().n_tokens()),
                                           [](std::string_view) { return std::nullopt; });
  SLIP_CHECK(grammar.has_value(), grammar ? "" : grammar.error().message + text);
  Result<GrammarMatcher> matcher = GrammarMatcher::create(std::move(*grammar));
  SLIP_CHECK(matcher.has_value(), "too ambiguous");
  return std::move(*matcher);
}

// The longest prefix of the text, taken byte by byte, that is a complete answer by the grammar.
inline std::optional<std::string_view> accepted(const std::string& grammar, const Words& words,
                                                std::string_view text) {
  GrammarMatcher matcher = matcher_of(grammar, words);
  std::optional<std::string_view> longest;
  for (std::size_t n = 0; n <= text.size(); ++n) {
    if (matcher.accept(0, words.pieces()).value_or(false)) longest = text.substr(0, n);
    if (n == text.size()) break;
    const Token token = 1 + static_cast<unsigned char>(text[n]);
    if (!matcher.accept(token, words.pieces()).value_or(false)) break;
  }
  return longest;
}

inline ChatAnswer parsed(const ChatTemplate& chat, const std::string& prompt,
                         const std::string& answer) {
  OutputParser parser({.format = chat.format(),
                       .tools = ToolSet(kTools),
                       .starts_in_reasoning = opens_reasoning(prompt, chat.format().reasoning)});
  ChatAnswer read;
  read.add(parser.push(answer));
  read.add(parser.finish());
  return read;
}

struct Demand {
  bool several = true;
  std::string only = {};  // the only tool, if not empty
};

inline std::string grammar_of(const ChatTemplate& chat, const CallMarkup& markup,
                              const Words& words, const Demand& demand) {
  const std::string prompt = prompt_of(chat);
  CallGrammar grammar(
      {.markup = markup,
       .format = chat.format(),
       .prompt = prompt,
       .allows_several = demand.several,
       .markup_tokens = [&](std::string_view text) { return words.tokens_in(text); }});
  for (const Json& tool : kTools) {
    if (!demand.only.empty() && tool["function"]["name"] != demand.only) continue;
    const Result<void> added = grammar.add(tool["function"]);
    EXPECT_TRUE(added.has_value()) << added.error().message;
  }
  const Result<std::string> text = grammar.text();
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text.value_or("root ::= \"\"");
}

inline constexpr std::string_view kHead =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}";
inline constexpr std::string_view kTail = "{% endfor %}[end]{% endfor %}";
inline constexpr std::string_view kTaggedCall =
    "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}\n</tool_call>";
inline constexpr std::string_view kElementCall =
    "<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}"
    "<parameter={{ k }}>\n{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}"
    "</function>\n</tool_call>";

inline ChatTemplate with_calls(std::string_view call, std::string_view prompt = "[assistant]") {
  return chat_of(std::string(kHead) + std::string(call) + std::string(kTail) +
                 "{% if add_generation_prompt %}" + std::string(prompt) + "{% endif %}");
}

}  // namespace slipstream
