#include "server/recall/rescue.h"

#include <gtest/gtest.h>

#include <string>

#include "server/recall/message_text.h"
#include "server/recall/recall_limits.h"

namespace slipstream {
namespace {

Json user(const std::string& text) { return {{"role", "user"}, {"content", text}}; }
Json assistant(const std::string& text) { return {{"role", "assistant"}, {"content", text}}; }

std::size_t count_of(std::string_view text) { return text.size() / 4; }
std::size_t count_of(const Json& messages) {
  std::size_t n = 0;
  for (const Json& message : messages)
    n += 5 + count_of(std::string_view(text_of_message(message)));
  return n;
}

constexpr std::size_t kContext = 1000;
constexpr std::size_t kAnswer = 100;

RescueInput input_of(Json messages) {
  return {
      .messages = std::move(messages),
      .n_context = kContext,
      .n_answer = kAnswer,
      .n_beside = 0,
      .count_tokens = [](std::string_view text) -> Result<std::size_t> { return count_of(text); },
      .fits = [](const Json& kept) { return count_of(kept) + kAnswer <= kContext; }};
}

Rescued rescued(const Json& messages, const RescueOptions& options = {}) {
  ApiResult<Rescued> result = Rescue(options).rescue(input_of(messages));
  if (!result) ADD_FAILURE() << result.error().message;
  return result ? std::move(*result) : Rescued{};
}

const std::string kFiller =
    " It rained all day, and nobody else had anything to tell about it. The "
    "road was long and the carts were slow, as they always are in autumn.";

std::string fact(int i) {
  return "The keeper of place" + std::to_string(i) + " is called name" + std::to_string(i) + ".";
}

// So many turns of about 75 tokens.
Json conversation(int n_turns) {
  Json messages = Json::array({{{"role", "system"}, {"content", "Be brief."}}});
  for (int i = 0; i < n_turns; ++i) {
    messages.push_back(user(fact(i) + kFiller));
    messages.push_back(assistant("I see, number " + std::to_string(i) + "."));
  }
  return messages;
}

Json asked(Json messages, const std::string& question) {
  messages.push_back(user(question));
  return messages;
}

TEST(Rescue, LeavesAloneWhatFits) {
  const Json messages = asked(conversation(10), "Who keeps place3?");
  const Rescued result = rescued(messages);
  EXPECT_EQ(result.n_turns_dropped, 0U);
  EXPECT_EQ(result.messages, messages);
}

TEST(Rescue, BringsBackWhatIsAskedFor) {
  const Json messages = asked(conversation(60), "Who keeps place3?");
  const Rescued result = rescued(messages);
  EXPECT_GT(result.n_turns_dropped, 45U);
  EXPECT_LE(count_of(result.messages) + kAnswer, kContext);
  EXPECT_EQ(result.messages[0], messages[0]) << "the system message stays";
  EXPECT_EQ(result.messages[1]["role"], "user") << "turns leave whole";
  const std::string last = text_of_message(result.messages.back());
  EXPECT_TRUE(
      last.starts_with("From earlier in this conversation:\nUser: The keeper of place3 is "
                       "called name3."))
      << last;
  EXPECT_TRUE(last.ends_with("\nWho keeps place3?")) << last;
}

TEST(Rescue, OnlyCutsWithoutABudget) {
  const Json messages = asked(conversation(60), "Who keeps place3?");
  const Rescued result = rescued(messages, {.n_recalled_max = 0});
  EXPECT_GT(result.n_turns_dropped, 45U);
  EXPECT_EQ(result.messages.back(), messages.back());
}

TEST(Rescue, PromptsBeginAsTheOneBefore) {
  Json messages = conversation(1);
  Rescued before;
  std::size_t n_cuts = 0;
  constexpr int kTurns = 80;
  for (int i = 0; i < kTurns; ++i) {
    const std::string question = i % 4 == 0 ? "Who keeps place" + std::to_string(i / 2) + "? " : "";
    messages.push_back(user(question + fact(i) + kFiller));
    Rescued now = rescued(messages);
    EXPECT_LE(count_of(now.messages) + kAnswer, kContext);
    if (now.n_turns_dropped == before.n_turns_dropped) {
      ASSERT_GT(now.messages.size(), before.messages.size());
      for (std::size_t m = 0; m < before.messages.size(); ++m) {
        ASSERT_EQ(now.messages[m], before.messages[m]) << "turn " << i << ", message " << m;
      }
    } else {
      ++n_cuts;
    }
    before = std::move(now);
    messages.push_back(assistant("I see."));
  }
  EXPECT_GT(n_cuts, 5U);
  EXPECT_LT(n_cuts, kTurns / 3U) << "a cut makes room for several turns";
}

TEST(Rescue, ResultsOfToolsAreNoQuestion) {
  Json messages = asked(conversation(60), "Who keeps place3?");
  const Rescued before = rescued(messages);
  messages.push_back(assistant(""));
  messages.back()["tool_calls"] = Json::array(
      {{{"id", "1"}, {"function", {{"name", "look"}, {"arguments", "{\"at\": \"place9\"}"}}}}});
  messages.push_back({{"role", "tool"}, {"tool_call_id", "1"}, {"content", "Who keeps place9?"}});
  const Rescued after = rescued(messages);
  ASSERT_EQ(after.messages.size(), before.messages.size() + 2);
  EXPECT_EQ(after.messages[before.messages.size() - 1], before.messages.back());
  EXPECT_EQ(after.messages.back(), messages.back());
}

TEST(Rescue, FindsWhatToolsWereAskedAndSaid) {
  Json messages = conversation(3);
  messages.push_back(user("Look it up."));
  messages.push_back(assistant(""));
  messages.back()["tool_calls"] = Json::array(
      {{{"id", "1"}, {"function", {{"name", "find_ship"}, {"arguments", "{\"of\": \"Mirel\"}"}}}}});
  messages.push_back({{"role", "tool"}, {"tool_call_id", "1"}, {"content", "the Gallant Otter"}});
  for (int i = 3; i < 40; ++i) {
    messages.push_back(user(fact(i) + kFiller));
    messages.push_back(assistant("Yes."));
  }
  const Rescued result = rescued(asked(messages, "What was the ship of Mirel?"));
  const std::string last = text_of_message(result.messages.back());
  EXPECT_TRUE(last.contains("Assistant: find_ship{\"of\": \"Mirel\"}\nTool: the Gallant Otter\n"))
      << last;
}

TEST(Rescue, CutsFurtherWhereATemplateWritesMore) {
  const Json messages = asked(conversation(60), "Who keeps place3?");
  RescueInput input = input_of(messages);
  int n_tries = 0;
  input.fits = [&](const Json& kept) {
    ++n_tries;
    return 3 * count_of(kept) + kAnswer <= kContext;
  };
  const ApiResult<Rescued> result = Rescue({}).rescue(input);
  ASSERT_TRUE(result);
  EXPECT_GT(n_tries, 1);
  EXPECT_LE(3 * count_of(result->messages) + kAnswer, kContext);
  EXPECT_TRUE(text_of_message(result->messages.back()).ends_with("Who keeps place3?"));
}

TEST(Rescue, GivesTheLastTurnIfNothingElseFits) {
  const std::string long_text(8 * kContext, 'x');
  const Rescued result = rescued(asked(conversation(60), long_text));
  ASSERT_EQ(result.messages.size(), 2U);
  EXPECT_EQ(text_of_message(result.messages[1]), long_text);
  const Json alone = Json::array({user(long_text)});
  EXPECT_EQ(rescued(alone).messages, alone);
}

TEST(Rescue, RefusesWhatIsTooLongForSearching) {
  const auto refusal = [](const Json& messages) {
    const ApiResult<Rescued> result = Rescue({}).rescue(input_of(messages));
    EXPECT_FALSE(result);
    if (result) return std::string();
    EXPECT_EQ(result.error().status, 400);
    EXPECT_EQ(result.error().code, "context_length_exceeded");
    EXPECT_EQ(result.error().param, "messages");
    return result.error().message;
  };
  EXPECT_TRUE(refusal(conversation(300)).contains("more than 16000 tokens, 16 times")) << "tokens";
  Json many = Json::array();
  for (std::size_t i = 0; i <= kRecallLimits.turns_max; ++i) many.push_back(user("a"));
  EXPECT_TRUE(refusal(many).contains("4097 turns, more than the 4096"));
  EXPECT_TRUE(refusal(asked(conversation(60), std::string(16 * 8 * kContext, 'x')))
                  .contains("bytes of text, more than the 128000"));
}

TEST(Rescue, TakesWhatIsNoConversation) {
  const std::string text(8 * kContext, 'x');
  for (const Json& strange :
       {Json::array(), Json::array({7, "x", Json::object()}),
        Json::array({Json{{"role", "system"}, {"content", text}}}),
        Json::array({Json{{"role", "user"}, {"content", 7}}, Json{{"content", text}}}),
        Json::array({Json{{"role", "assistant"}, {"content", text}, {"tool_calls", {1, "x"}}},
                     user(text)})}) {
    EXPECT_TRUE(Rescue({}).rescue(input_of(strange)));
  }
}

}  // namespace
}  // namespace slipstream
