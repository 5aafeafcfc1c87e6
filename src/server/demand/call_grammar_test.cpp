#include "server/demand/call_grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/format.h"
#include "engine/sampling/grammar_matcher.h"
#include "server/output/chat_answer.h"
#include "server/output/output_parser.h"
#include "server/schema/naive_validator.h"
#include "server/template/public_templates.h"

namespace slipstream {
namespace {

using Json = nlohmann::ordered_json;

// Keys in alphabetical order, for some templates sort them.
const Json kTools = Json::parse(R"([
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

ChatTemplate chat_of(std::string_view source) {
  Result<ChatTemplate> chat = ChatTemplate::create(source, "<bos>", "<eos>");
  SLIP_CHECK(chat.has_value(), "a template that cannot be read");
  return std::move(*chat);
}

Json message_of(std::string_view name, const Json& arguments, int n_calls = 1) {
  Json calls = Json::array();
  for (int i = 0; i < n_calls; ++i) {
    calls.push_back({{"id", format_text("call{:05}", i)},
                     {"type", "function"},
                     {"function", {{"name", name}, {"arguments", arguments.dump()}}}});
  }
  return {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", calls}};
}

const Json kUser = {{"role", "user"}, {"content", "Hello?"}};

std::string prompt_of(const ChatTemplate& chat) {
  const auto prompt = chat.render({.messages = Json::array({kUser}), .tools = kTools});
  return prompt ? prompt->text() : "";
}

// All single bytes, the family's markup as tokens of more, and an end of answers.
class Words {
 public:
  // `are_special`: the markup is special tokens, and not only long ones.
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

GrammarMatcher matcher_of(const std::string& text, const Words& words) {
  Result<Grammar> grammar = Grammar::parse(text, static_cast<int>(words.pieces().n_tokens()),
                                           [](std::string_view) { return std::nullopt; });
  SLIP_CHECK(grammar.has_value(), grammar ? "" : grammar.error().message + text);
  Result<GrammarMatcher> matcher = GrammarMatcher::create(std::move(*grammar));
  SLIP_CHECK(matcher.has_value(), "too ambiguous");
  return std::move(*matcher);
}

// The longest start of the text, taken byte by byte, that is an answer by the grammar.
std::optional<std::string_view> accepted(const std::string& grammar, const Words& words,
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

// An answer as a very forgetful model would give it; none if it does not come to an end.
std::optional<std::string> random_answer(const std::string& grammar, const Words& words,
                                         std::mt19937& random) {
  const auto chance = [&random](unsigned percent) { return random() % 100 < percent; };
  GrammarMatcher matcher = matcher_of(grammar, words);
  std::string answer;
  while (answer.size() < 3000) {
    std::vector<bool> allowed;
    SLIP_CHECK(matcher.find_allowed(words.pieces(), allowed).has_value(), "too ambiguous");
    if (allowed[0] && chance(60)) return answer;
    std::vector<Token> likely;  // they lead on: all other bytes are more of some text
    std::vector<Token> all;
    for (std::size_t i = 1; i < allowed.size(); ++i) {
      if (!allowed[i] || words.pieces().is_end(static_cast<Token>(i))) continue;
      all.push_back(static_cast<Token>(i));
      const bool is_mark =
          !words.is_long(i) &&
          std::string("\n\"]})<").contains(words.pieces().piece(static_cast<Token>(i)));
      if (words.is_long(i) || is_mark) likely.push_back(static_cast<Token>(i));
    }
    if (all.empty()) return allowed[0] ? std::optional(answer) : std::nullopt;
    const std::vector<Token>& from = !likely.empty() && chance(80) ? likely : all;
    const Token token = from[random() % from.size()];
    SLIP_CHECK(matcher.accept(token, words.pieces()).value_or(false), "allowed and refused");
    answer += words.pieces().piece(token);
  }
  return std::nullopt;
}

ChatAnswer parsed(const ChatTemplate& chat, const std::string& prompt, const std::string& answer) {
  OutputParser parser({.format = chat.format(),
                       .tools = ToolSet(kTools),
                       .starts_in_reasoning = opens_reasoning(prompt, chat.format().reasoning)});
  ChatAnswer read;
  read.add(parser.push(answer));
  read.add(parser.finish());
  return read;
}

// Empty if the answer is calls of these tools, as their schemas want them, and nothing else.
std::string fault_in(const ChatAnswer& answer, const std::set<std::string>& allowed) {
  if (!answer.content.empty()) return "content: " + answer.content;
  if (answer.calls.empty()) return "no call";
  for (const ChatAnswer::Call& call : answer.calls) {
    if (!call.complete) return "not complete";
    if (!allowed.contains(call.name)) return "calls " + call.name;
    const Json arguments = Json::parse(call.arguments, nullptr, false);
    for (const Json& tool : kTools) {
      if (tool["function"]["name"] != call.name) continue;
      const NaiveValidator validator(tool["function"]["parameters"]);
      if (!validator.accepts(arguments)) return "not valid: " + call.arguments;
    }
  }
  return "";
}

struct Demand {
  bool several = true;
  std::string only = {};  // the one tool
};

std::string grammar_of(const ChatTemplate& chat, const CallMarkup& markup, const Words& words,
                       const Demand& demand) {
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

// The calls of a conversation as its template writes them; with a thought where the prompt demands
// one.
std::string canonical_answer(const ChatTemplate& chat, const Json& message) {
  const std::string prompt = prompt_of(chat);
  const auto rendered = chat.render(
      {.messages = Json::array({kUser, message}), .tools = kTools, .add_generation_prompt = false});
  EXPECT_TRUE(rendered.has_value()) << rendered.error().message;
  if (!rendered) return "";
  const std::string& whole = rendered->text();
  auto start = static_cast<std::size_t>(std::ranges::mismatch(whole, prompt).in1 - whole.begin());
  // Not from the middle of a tag that begins as the prompt's last.
  const std::size_t tag = whole.rfind('<', start);
  const bool is_part = tag > whole.rfind("Hello?", start) && whole.find('>', tag) >= start;
  if (is_part) start = std::min(start, tag);
  std::string answer = whole.substr(start);
  const std::string_view close = reasoning_tags(chat.format().reasoning).close;
  const std::size_t thought = answer.substr(0, answer.find("get_weather")).find(close);
  if (opens_reasoning(prompt, chat.format().reasoning)) {
    if (thought == answer.npos) answer = "Well." + std::string(close) + answer;
  } else if (thought != answer.npos && prompt.ends_with(close)) {
    answer.erase(0, thought + close.size());  // one that ended in the prompt
  }
  return answer;
}

// Small templates of our own. ---------------------------------------------------------------------

constexpr std::string_view kHead =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{{ m.content or '' }}{% for c in m.tool_calls or [] %}";
constexpr std::string_view kTail = "{% endfor %}[end]{% endfor %}";
constexpr std::string_view kTaggedCall =
    "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}\n</tool_call>";
constexpr std::string_view kElementCall =
    "<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}"
    "<parameter={{ k }}>\n{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}"
    "</function>\n</tool_call>";

ChatTemplate with_calls(std::string_view call, std::string_view prompt = "[assistant]") {
  return chat_of(std::string(kHead) + std::string(call) + std::string(kTail) +
                 "{% if add_generation_prompt %}" + std::string(prompt) + "{% endif %}");
}

std::string grammar_of(const ChatTemplate& chat, const Demand& demand = {}) {
  const Result<CallMarkup> markup = call_markup_of(chat);
  EXPECT_TRUE(markup.has_value()) << markup.error().message;
  return grammar_of(chat, markup.value_or(CallMarkup{}), Words({}, false), demand);
}

bool matches(const std::string& grammar, std::string_view text) {
  return accepted(grammar, Words({}, false), text) == text;
}

std::string tagged(std::string_view name, std::string_view arguments) {
  return format_text("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>", name,
                     arguments);
}
const std::string kTime = tagged("get-time", R"({"zone": "UTC"})");
const std::string kWeather = tagged("get_weather", R"({"city": "Paris", "days": 3})");

TEST(CallMarkup, IsCutOutOfWhatTheTemplateWrites) {
  const Result<CallMarkup> markup = call_markup_of(with_calls(kTaggedCall));
  ASSERT_TRUE(markup.has_value());
  EXPECT_EQ(markup->before_name, "<tool_call>\n{\"name\": \"");
  EXPECT_EQ(markup->after_name, "\", \"arguments\": ");
  EXPECT_EQ(markup->between, "}\n</tool_call><tool_call>\n{\"name\": \"");
  EXPECT_EQ(markup->after_last, "}\n</tool_call>");
  EXPECT_FALSE(markup->members);
}

TEST(CallMarkup, KnowsArgumentsThatAreElements) {
  const Result<CallMarkup> markup = call_markup_of(with_calls(kElementCall));
  ASSERT_TRUE(markup.has_value() && markup->members);
  EXPECT_EQ(markup->before_name, "<tool_call>\n<function=");
  EXPECT_EQ(markup->members->first, ">\n<parameter=");
  EXPECT_EQ(markup->members->text_open, ">\n");
  EXPECT_EQ(markup->members->text_close, "");
  EXPECT_EQ(markup->members->text_end, "</parameter>");
  EXPECT_EQ(markup->members->next, "\n</parameter>\n<parameter=");
  EXPECT_EQ(markup->members->close, "\n</parameter>\n</function>");
  EXPECT_EQ(markup->members->close_empty, ">\n</function>");
  EXPECT_EQ(markup->after_last, "\n</tool_call>");
}

TEST(CallMarkup, NumbersAndIdsMayBeOthers) {
  const Result<CallMarkup> markup = call_markup_of(with_calls(
      "[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments | tojson "
      "}}"));
  ASSERT_TRUE(markup.has_value());
  EXPECT_EQ(markup->after_name, std::string("[CALL_ID]") + kAnyId + "[ARGS]");
  const Result<CallMarkup> numbered = call_markup_of(
      with_calls("<|tool_calls_section_begin|><|tool_call_begin|>functions.{{ c.function.name }}:"
                 "{{ loop.index0 }}<|tool_call_argument_begin|>{{ c.function.arguments | tojson }}"
                 "<|tool_call_end|>"));
  ASSERT_TRUE(numbered.has_value());
  EXPECT_EQ(numbered->after_name, std::string(":") + kAnyNumber + "<|tool_call_argument_begin|>");
}

TEST(CallMarkup, WhatOurParserCannotReadIsNotDemanded) {
  const ChatTemplate chat =
      with_calls("~{{ c.function.name }}~{{ c.function.arguments | tojson }}");
  const Result<CallMarkup> markup = call_markup_of(chat);
  ASSERT_TRUE(markup.has_value());  // in our own form, which it reads in every template like this
  EXPECT_EQ(markup->before_name, "<tool_call>\n{\"name\": \"");
  const Result<CallMarkup> none = call_markup_of(with_calls("[TOOL_CALLS]"));
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kUnsupported);
}

TEST(CallGrammar, DemandsCallsAndNothingElse) {
  const std::string grammar = grammar_of(with_calls(kTaggedCall));
  EXPECT_TRUE(matches(grammar, kTime));
  EXPECT_TRUE(matches(grammar, kWeather + kTime + kWeather));
  EXPECT_TRUE(matches(grammar, "\n" + kTime));
  EXPECT_FALSE(matches(grammar, ""));
  EXPECT_FALSE(matches(grammar, "Sure. " + kTime));
  EXPECT_FALSE(matches(grammar, kTime + "Done."));
  EXPECT_FALSE(matches(grammar, tagged("get_tim", "{}")));
  EXPECT_FALSE(matches(grammar, tagged("get-time", R"({"zone": "utc"})")));
  EXPECT_FALSE(matches(grammar, tagged("get_weather", R"({"city": "Paris"})")));
  EXPECT_FALSE(matches(grammar, tagged("get_weather", R"({"city": "Paris", "days": 99})")));
}

TEST(CallGrammar, OneCallOrOneToolWhereNoMoreIsAllowed) {
  const ChatTemplate chat = with_calls(kTaggedCall);
  const std::string one = grammar_of(chat, {.several = false});
  EXPECT_TRUE(matches(one, kTime) && matches(one, kWeather));
  EXPECT_FALSE(matches(one, kTime + kTime));
  const std::string named = grammar_of(chat, {.several = false, .only = "get-time"});
  EXPECT_TRUE(matches(named, kTime));
  EXPECT_FALSE(matches(named, kWeather));
}

TEST(CallGrammar, ReasoningThatThePromptOpenedIsClosedFirst) {
  const std::string grammar =
      grammar_of(with_calls(kTaggedCall, "[assistant]<think>\n{# </think> #}"));
  EXPECT_TRUE(matches(grammar, "Hm. <b>\n</think>\n\n" + kTime));
  EXPECT_FALSE(matches(grammar, kTime));
  EXPECT_FALSE(matches(grammar, "Hm.</think> or </think>" + kTime));
}

TEST(CallGrammar, AModelThatReasonsMayDoSoUnlessThePromptHasEndedIt) {
  const std::string may = grammar_of(with_calls(kTaggedCall, "[assistant]{# <think></think> #}"));
  EXPECT_TRUE(matches(may, kTime));
  EXPECT_TRUE(matches(may, "<think>\nHm.\n</think>\n\n" + kTime));
  const std::string must_not =
      grammar_of(with_calls(kTaggedCall, "[assistant]<think>\n\n</think>\n\n"));
  EXPECT_TRUE(matches(must_not, kTime));
  EXPECT_FALSE(matches(must_not, "<think>\nHm.\n</think>\n\n" + kTime));
}

// What "response_format" demands, beside tools or after reasoning.
std::string grammar_with_value(const ChatTemplate& chat, bool has_tools) {
  const std::string prompt = prompt_of(chat);
  const Result<CallMarkup> markup = call_markup_of(chat);
  CallGrammar grammar({.markup = markup.value_or(CallMarkup{}),
                       .format = chat.format(),
                       .prompt = prompt,
                       .markup_tokens = {}});
  const Json schema = Json::parse(
      R"({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
          "additionalProperties": false})");
  EXPECT_TRUE(grammar.allow_value(schema).has_value());
  if (has_tools) {
    for (const Json& tool : kTools) EXPECT_TRUE(grammar.add(tool["function"]).has_value());
  }
  return grammar.text().value_or("root ::= \"\"");
}

TEST(CallGrammar, AValueFollowsTheReasoningThatThePromptOpened) {
  const ChatTemplate chat = with_calls(kTaggedCall, "[assistant]<think>\n{# </think> #}");
  const std::string grammar = grammar_with_value(chat, false);
  const std::string answer = "Hm. {\"n\": 2}?\n</think>\n\n{\"n\": 7}";
  EXPECT_TRUE(matches(grammar, answer));
  EXPECT_FALSE(matches(grammar, "{\"n\": 7}")) << "it would be taken for a thought";
  EXPECT_FALSE(matches(grammar, "Hm.</think>{\"n\": \"x\"}"));
  EXPECT_FALSE(matches(grammar, "Hm.</think>" + kTime));
  const ChatAnswer read = parsed(chat, prompt_of(chat), answer);
  EXPECT_EQ(read.content, "{\"n\": 7}");
  EXPECT_TRUE(read.reasoning.contains("Hm."));
}

TEST(CallGrammar, ACallMayComeInsteadOfAValue) {
  const std::string grammar = grammar_with_value(with_calls(kTaggedCall), true);
  EXPECT_TRUE(matches(grammar, "{\"n\": 7}"));
  EXPECT_TRUE(matches(grammar, kTime + kWeather));
  EXPECT_FALSE(matches(grammar, "{\"n\": 7}" + kTime));
  EXPECT_FALSE(matches(grammar, "{\"m\": 7}"));
  EXPECT_FALSE(matches(grammar, "Sure."));
}

TEST(CallGrammar, TextsStandAsTheyAreInElements) {
  const std::string grammar = grammar_of(with_calls(kElementCall));
  const auto call = [](std::string_view city, std::string_view more) {
    return format_text(
        "<tool_call>\n<function=get_weather>\n<parameter=city>\n{}\n</parameter>\n{}</function>\n"
        "</tool_call>",
        city, more);
  };
  const std::string days = "<parameter=days>\n3\n</parameter>\n";
  EXPECT_TRUE(matches(grammar, call("\"Paris\"\\ </param>", days)));
  EXPECT_TRUE(matches(grammar, call("Paris", days + "<parameter=unit>\nC\n</parameter>\n")));
  EXPECT_FALSE(matches(grammar, call("Paris", days + "<parameter=unit>\n\"C\"\n</parameter>\n")));
  EXPECT_FALSE(matches(grammar, call("Paris", "")));  // days are required
  EXPECT_FALSE(matches(grammar, call("", days)));     // minLength
  EXPECT_FALSE(matches(grammar, call("a</parameter>b", days)));
  // JSON neither: the parser would take it for the end.
  const auto place = [&](std::string_view y) {
    return call("Paris", format_text("{}<parameter=place>\n{{\"x\": 1, \"y\": \"{}\"}}\n"
                                     "</parameter>\n",
                                     days, y));
  };
  EXPECT_TRUE(matches(grammar, place("a/b\\n\\u003cc")));
  EXPECT_FALSE(matches(grammar, place("a</parameter>b")));
}

TEST(CallGrammar, FamiliesWhoseTemplatesOnlyTeachTheForm) {
  const ChatTemplate lfm = chat_of(
      "List of tools: {{ tools | tojson }}{% for m in messages %}"
      "{{ m.content }}{% endfor %}");
  EXPECT_TRUE(matches(grammar_of(lfm),
                      "<|tool_call_start|>[get_weather(city=\"Paris\", days=3), "
                      "get-time()]<|tool_call_end|>"));
  const ChatTemplate granite = chat_of(
      "Write <|tool_call|> first. {{ tools | tojson }}"
      "{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_TRUE(matches(grammar_of(granite),
                      "<|tool_call|>[{\"name\": \"get-time\", \"arguments\": {}}, "
                      "{\"name\": \"get-time\", \"arguments\": {\"zone\": \"UTC\"}}]"));
  const ChatTemplate plain = chat_of("{% for m in messages %}{{ m.content }}{% endfor %}");
  EXPECT_TRUE(matches(grammar_of(plain), kTime + "\n" + kWeather));
}

// Of a vocabulary in which this text is a token.
Result<std::string> grammar_with_token(const MarkupToken& token, bool allows_several) {
  const ChatTemplate chat = with_calls(kTaggedCall);
  CallGrammar grammar({.markup = *call_markup_of(chat),
                       .format = chat.format(),
                       .prompt = "",
                       .allows_several = allows_several,
                       .markup_tokens = [&token](std::string_view text) {
                         std::vector<MarkupToken> found;
                         if (text.contains(token.text)) found.push_back(token);
                         return found;
                       }});
  EXPECT_TRUE(grammar.add(kTools[1]["function"]).has_value());
  return grammar.text();
}

TEST(CallGrammar, MarkupThatIsATokenIsDemandedAsOne) {
  const Result<std::string> grammar = grammar_with_token({"<tool_call>", 40, false}, false);
  ASSERT_TRUE(grammar.has_value());
  const Words words({}, false);
  GrammarMatcher matcher = matcher_of(*grammar, words);
  EXPECT_FALSE(matcher.accept(1 + '<', words.pieces()).value_or(true));
  EXPECT_TRUE(matcher.accept(40, words.pieces()).value_or(false));
  EXPECT_TRUE(matcher.accept(1 + '\n', words.pieces()).value_or(false));
}

TEST(CallGrammar, EndsWhereAMarkupTokenEndsTheAnswer) {
  const MarkupToken end{"</tool_call>", 40, true};
  const Result<std::string> one = grammar_with_token(end, false);
  ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_TRUE(matches(*one, "<tool_call>\n{\"name\": \"get-time\", \"arguments\": {}}\n"));
  const Result<std::string> several = grammar_with_token(end, true);  // it stands between them too
  ASSERT_FALSE(several.has_value());
  EXPECT_TRUE(several.error().message.contains("</tool_call> ends answers"));
}

// The message for a tool with these parameters, or nothing.
std::string refusal_of(const char* parameters, std::string_view call) {
  const ChatTemplate chat = with_calls(call);
  CallGrammar grammar({.markup = *call_markup_of(chat), .format = chat.format(), .prompt = ""});
  const Result<void> added = grammar.add({{"name", "f"}, {"parameters", Json::parse(parameters)}});
  return added ? "" : added.error().message;
}

TEST(CallGrammar, RefusesParametersThatCannotBeObeyed) {
  for (const std::string_view call : {kTaggedCall, kElementCall}) {
    SCOPED_TRACE(call);
    EXPECT_EQ(refusal_of("null", call), "");
    EXPECT_EQ(refusal_of("{}", call), "");
    EXPECT_NE(refusal_of("[]", call), "");
    EXPECT_NE(refusal_of(R"({"type": "string"})", call), "");
    EXPECT_NE(refusal_of(R"({"if": {}})", call), "");
    EXPECT_NE(refusal_of(R"({"required": ["a"], "properties": {"a": false}})", call), "");
    EXPECT_EQ(refusal_of(R"({"required": ["a"], "properties": {"a": {"$ref": "#/$defs/d"}},
                             "$defs": {"d": {"type": "string"}}})",
                         call),
              "");
  }
  constexpr const char* kSpaced = R"({"properties": {"a b": {"type": "string"}}})";
  EXPECT_EQ(refusal_of(kSpaced, kTaggedCall), "");
  EXPECT_TRUE(refusal_of(kSpaced, kElementCall).contains("a b"));
}

// Those of public models. ------------------------------------------------------------------------

// Whose own form our parser does not read: calls are demanded in ours.
const std::set<std::string> kFormsNotRead = {"CohereForAI-c4ai-command-r-plus-tool_use",
                                             "GigaChat3-10B-A1.8B",
                                             "GigaChat3.1-10B-A1.8B",
                                             "Kimi-K3",
                                             "MiniMax-M3",
                                             "meetkai-functionary-medium-v3.2",
                                             "muse-glimmer",
                                             "tencent-Hy3"};

TEST(PublicTemplates, ACallAsTheyWriteItIsWhatTheGrammarDemands) {
  const std::vector<PublicTemplate> templates = public_templates();
  if (templates.empty()) GTEST_SKIP() << "no templates at hand";
  const Json arguments = {{"city", "Paris \"1\""}, {"days", 3}, {"unit", "C"}};
  for (const auto& [model, source] : templates) {
    SCOPED_TRACE(model);
    const ChatTemplate chat = chat_of(source);
    const Result<CallMarkup> markup = call_markup_of(chat);
    ASSERT_TRUE(markup.has_value()) << markup.error().message;
    const std::string start = markup->before_name + "f" + markup->after_name;
    std::printf("%-46s %-15s %s%s\n", model.c_str(), name(chat.format().tool_calls).data(),
                Json(start).dump().c_str(), markup->between ? "" : " (one call)");
    if (kFormsNotRead.contains(model)) {
      EXPECT_EQ(markup->before_name, "<tool_call>\n{\"name\": \"");
      continue;
    }
    // Where we write past calls, it is in our form. LFM's quotes are Python's, ours are JSON's.
    const bool is_lfm = chat.format().tool_calls == ToolCallFamily::kLfm;
    if (!chat.abilities().takes_calls || is_lfm) continue;
    const Words words(chat.format(), false);
    const std::string grammar = grammar_of(chat, *markup, words, {});
    for (const int n_calls : {1, 3}) {
      if (n_calls > 1 && !markup->between) continue;
      const std::string text =
          canonical_answer(chat, message_of("get_weather", arguments, n_calls));
      const std::string taken(accepted(grammar, words, text).value_or(""));
      const ChatAnswer read = parsed(chat, prompt_of(chat), taken);
      EXPECT_EQ(read.calls.size(), n_calls) << text << "\n" << grammar;
      EXPECT_EQ(fault_in(read, {"get_weather"}), "") << text << "\n" << taken;
    }
  }
}

TEST(PublicTemplates, WhateverTheGrammarAllowsIsReadAsValidCalls) {
  const std::vector<PublicTemplate> templates = public_templates();
  if (templates.empty()) GTEST_SKIP() << "no templates at hand";
  // With sanitizers all of them would take minutes.
  constexpr std::size_t kStride = SLIPSTREAM_SANITIZED ? 8 : 1;
  for (std::size_t at = 0; at < templates.size(); at += kStride) {
    const auto& [model, source] = templates[at];
    SCOPED_TRACE(model);
    const ChatTemplate chat = chat_of(source);
    const Result<CallMarkup> markup = call_markup_of(chat);
    ASSERT_TRUE(markup.has_value()) << markup.error().message;
    std::mt19937 random(1);
    for (const bool are_special : {false, true}) {
      const Words words(chat.format(), are_special);
      const std::string prompt = prompt_of(chat);
      for (const Demand& demand : {Demand{}, Demand{.several = false}, Demand{false, "get-time"}}) {
        const std::string grammar = grammar_of(chat, *markup, words, demand);
        int n_ended = 0;
        std::set<std::size_t> n_calls;
        for (int i = 0; i < 16; ++i) {
          const std::optional<std::string> text = random_answer(grammar, words, random);
          if (!text) continue;
          ++n_ended;
          const ChatAnswer answer = parsed(chat, prompt, *text);
          const std::set<std::string> allowed =
              demand.only.empty() ? std::set<std::string>{"get-time", "get_weather"}
                                  : std::set{demand.only};
          EXPECT_EQ(fault_in(answer, allowed), "") << *text << "\n" << grammar;
          n_calls.insert(answer.calls.size());
        }
        EXPECT_GE(n_ended, 4) << grammar;
        if (!demand.several) {
          EXPECT_EQ(n_calls, std::set<std::size_t>{1});
        }
      }
    }
  }
}

}  // namespace
}  // namespace slipstream
