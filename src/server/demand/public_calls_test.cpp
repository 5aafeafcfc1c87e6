// Demanded calls in the markup of public models' templates.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "engine/sampling/grammar_matcher.h"
#include "server/demand/call_grammar.h"
#include "server/demand/demanded_calls.h"
#include "server/json.h"
#include "server/output/chat_answer.h"
#include "server/schema/naive_validator.h"
#include "server/template/public_templates.h"

namespace slipstream {
namespace {

Json message_of(std::string_view name, const Json& arguments, int n_calls = 1) {
  Json calls = Json::array();
  for (int i = 0; i < n_calls; ++i) {
    calls.push_back({{"id", format_text("call{:05}", i)},
                     {"type", "function"},
                     {"function", {{"name", name}, {"arguments", arguments.dump()}}}});
  }
  return {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", calls}};
}

// An answer of a model that picks random tokens; nullopt if it does not end.
std::optional<std::string> random_answer(const std::string& grammar, const Words& words,
                                         std::mt19937& random) {
  const auto chance = [&random](unsigned percent) { return random() % 100 < percent; };
  GrammarMatcher matcher = matcher_of(grammar, words);
  std::string answer;
  while (answer.size() < 3000) {
    std::vector<bool> allowed;
    SLIP_CHECK(matcher.find_allowed(words.pieces(), allowed).has_value(), "too ambiguous");
    if (allowed[0] && chance(60)) return answer;
    std::vector<Token> likely;  // likely to make progress; other bytes only extend a text
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

// Empty if the answer consists only of calls of these tools that are valid under their schemas.
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

// The calls of a conversation as its template writes them, with a thought if the
// prompt demands one.
std::string canonical_answer(const ChatTemplate& chat, const Json& message) {
  const std::string prompt = prompt_of(chat);
  const auto rendered = chat.render(
      {.messages = Json::array({kUser, message}), .tools = kTools, .add_generation_prompt = false});
  EXPECT_TRUE(rendered.has_value()) << rendered.error().message;
  if (!rendered) return "";
  const std::string& whole = rendered->text();
  auto start = static_cast<std::size_t>(std::ranges::mismatch(whole, prompt).in1 - whole.begin());
  // Do not start inside a tag that begins like the last one of the prompt.
  const std::size_t tag = whole.rfind('<', start);
  const bool is_part = tag > whole.rfind("Hello?", start) && whole.find('>', tag) >= start;
  if (is_part) start = std::min(start, tag);
  std::string answer = whole.substr(start);
  const std::string_view close = reasoning_tags(chat.format().reasoning).close;
  const std::size_t thought = answer.substr(0, answer.find("get_weather")).find(close);
  if (opens_reasoning(prompt, chat.format().reasoning)) {
    if (thought == answer.npos) answer = "Well." + std::string(close) + answer;
  } else if (thought != answer.npos && prompt.ends_with(close)) {
    answer.erase(0, thought + close.size());  // the thought ended in the prompt
  }
  return answer;
}

// Templates whose own form OutputParser does not read. Calls are demanded in slipstream's form.
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
    // Past calls that conversation.cpp writes are in its own form. LFM's quotes are Python's, the
    // grammar's are JSON's.
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
  // With sanitizers, all templates would take minutes.
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
