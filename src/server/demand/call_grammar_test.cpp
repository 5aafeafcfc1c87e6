#include "server/demand/call_grammar.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "engine/sampling/grammar_matcher.h"
#include "server/demand/demanded_calls.h"
#include "server/json.h"
#include "server/output/chat_answer.h"

namespace slipstream {
namespace {

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

// The grammar for "response_format" beside tools or after reasoning.
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
  // JSON must not contain the closing tag either: the parser would treat it as the end.
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

// The grammar for a vocabulary in which this text is a token.
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
  const Result<std::string> several = grammar_with_token(end, true);  // also between calls
  ASSERT_FALSE(several.has_value());
  EXPECT_TRUE(several.error().message.contains("</tool_call> ends answers"));
}

// The error for a tool with these parameters, or "".
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

// Names are looked up in each schema that speaks of them, which the limit of steps must count.
TEST(CallGrammar, ManyNamesInManySchemasAreRefusedSoon) {
  Json schema = {{"type", "object"}};
  for (int i = 0; i < 1000; ++i) {
    schema["allOf"].push_back({{"additionalProperties", {{"minimum", i}}}});
  }
  // The last of them, so that the names are not merged with each of the others.
  Json names = Json::array();
  for (int i = 0; i < 15'000; ++i) names.push_back(format_text("r{}", i));
  schema["allOf"].push_back({{"required", names}});
  for (const std::string_view call : {kTaggedCall, kElementCall}) {
    const std::clock_t start = std::clock();
    EXPECT_TRUE(refusal_of(schema.dump().c_str(), call).contains("takes too long"));
    const double elapsed_ms = 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(elapsed_ms, 1000);
    std::printf("15,000 names in 1,000 schemas: %.0f ms\n", elapsed_ms);
  }
}

}  // namespace
}  // namespace slipstream
