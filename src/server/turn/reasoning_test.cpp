#include "server/turn/reasoning.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

ChatTemplate template_of(std::string_view source) {
  Result<ChatTemplate> chat = ChatTemplate::create(source, "", "");
  EXPECT_TRUE(chat.has_value()) << chat.error().message;
  return std::move(*chat);
}

constexpr std::string_view kPlain = "{{ messages[0].content }}<think>";
constexpr std::string_view kSwitch =
    "{{ messages[0].content }}{% if enable_thinking %}<think>{% endif %}";
constexpr std::string_view kEffort =
    "{% if reasoning_effort not in ['low', 'high'] and reasoning_effort is defined %}"
    "{{ raise_exception('no such effort') }}{% endif %}"
    "{{ messages[0].content }}{{ reasoning_effort }}<think>";

std::string variables_of(const ReasoningDemand& demand, std::string_view source) {
  Json variables;
  set_reasoning_variables(demand, template_of(source).abilities(), variables);
  return dump(variables);
}

std::optional<int> limit_of(const ReasoningDemand& demand, std::string_view source) {
  return reasoning_limit(demand, template_of(source).abilities());
}

TEST(Reasoning, ASwitchOfTheTemplateIsUsed) {
  EXPECT_EQ(variables_of({.is_on = false}, kSwitch),
            R"({"enable_thinking":false,"thinking":false})");
  EXPECT_EQ(limit_of({.is_on = false}, kSwitch), std::nullopt);
  EXPECT_EQ(variables_of({.is_on = false}, kPlain), "{}");
  EXPECT_EQ(limit_of({.is_on = false}, kPlain), 0);
}

TEST(Reasoning, AnEffortIsOneThatTheTemplateTakes) {
  EXPECT_EQ(variables_of({.effort = "low"}, kEffort), R"({"reasoning_effort":"low"})");
  EXPECT_EQ(variables_of({.effort = "medium"}, kEffort), R"({"reasoning_effort":"high"})");
  EXPECT_EQ(variables_of({.effort = "max"}, kEffort), R"({"reasoning_effort":"high"})");
  EXPECT_EQ(limit_of({.effort = "low"}, kEffort), std::nullopt);
}

TEST(Reasoning, AnEffortThatTheTemplateDoesNotKnowIsALimit) {
  EXPECT_EQ(limit_of({.effort = "minimal"}, kPlain), 128);
  EXPECT_EQ(limit_of({.effort = "low"}, kPlain), 1024);
  EXPECT_EQ(limit_of({.effort = "medium"}, kPlain), 8192);
  EXPECT_EQ(limit_of({.effort = "high"}, kPlain), std::nullopt);
  EXPECT_EQ(limit_of({.effort = "low", .n_tokens_max = 64}, kPlain), 64);
}

TEST(Reasoning, ABudgetIsKeptWhateverTheTemplateKnows) {
  EXPECT_EQ(limit_of({.n_tokens_max = 64}, kEffort), 64);
  EXPECT_EQ(variables_of({.n_tokens_max = 64}, "{{ messages[0].content }}{{ thinking_budget }}"),
            R"({"thinking_budget":64})");
}

TEST(Reasoning, VariablesOfTheClientWin) {
  Json variables = {{"enable_thinking", true}};
  set_reasoning_variables({.is_on = false}, template_of(kSwitch).abilities(), variables);
  EXPECT_EQ(variables["enable_thinking"], true);
}

TEST(Reasoning, TheMarkupIsTheFamilys) {
  const ReasoningParams think =
      reasoning_params({ToolCallFamily::kHermes, ReasoningFamily::kThink}, "assistant\n<think>\n");
  EXPECT_TRUE(think.is_open);
  EXPECT_FALSE(think.opens_anywhere);
  EXPECT_EQ(think.forced_end, "</think>");
  const ReasoningParams harmony =
      reasoning_params({ToolCallFamily::kHarmony, ReasoningFamily::kHarmony}, "<|start|>assistant");
  EXPECT_FALSE(harmony.is_open);
  EXPECT_TRUE(harmony.opens_anywhere);
  EXPECT_EQ(harmony.open, "<|channel|>analysis");
  EXPECT_EQ(harmony.forced_end, "<|end|><|start|>assistant");
}

}  // namespace
}  // namespace slipstream
