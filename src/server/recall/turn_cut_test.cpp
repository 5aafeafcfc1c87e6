#include "server/recall/turn_cut.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace slipstream {
namespace {

using Begins = std::vector<std::size_t>;

Json said(const char* role) { return {{"role", role}, {"content", "x"}}; }
Json calling(int n) {
  Json message = said("assistant");
  for (int i = 0; i < n; ++i) message["tool_calls"].push_back({{"id", i}});
  return message;
}

TEST(Turns, BeginWhereAUserSpeaks) {
  const Turns turns =
      turns_of({said("system"), said("developer"), said("user"), said("assistant"), said("system"),
                said("user"), said("user"), said("assistant"), said("user")});
  EXPECT_EQ(turns.n_front, 2U);
  EXPECT_EQ(turns.begins, (Begins{2, 5, 6, 8}));
}

TEST(Turns, KeepCallsWithTheirResults) {
  const Turns turns =
      turns_of({said("user"), calling(2), said("tool"), said("user"), said("tool"),
                said("assistant"), said("user"), calling(1), said("tool"), said("user")});
  EXPECT_EQ(turns.n_front, 0U);
  EXPECT_EQ(turns.begins, (Begins{0, 6, 9})) << "of two calls one had no result when a user spoke";
}

TEST(Turns, GoOnBehindCallsThatNeverHadAResult) {
  const Turns turns =
      turns_of({said("user"), calling(1), said("user"), said("assistant"), said("user")});
  EXPECT_EQ(turns.begins, (Begins{0, 4}));
}

TEST(Turns, TakeWhatIsNoConversation) {
  EXPECT_TRUE(turns_of(Json::array()).begins.empty());
  EXPECT_TRUE(turns_of(Json::array({said("system")})).begins.empty());
  EXPECT_EQ(turns_of({said("assistant"), said("user")}).begins, (Begins{0, 1}));
  EXPECT_EQ(turns_of({7, "x", Json::object()}).begins, (Begins{0}));
}

TEST(TurnCut, LetsTheOldestLeaveUntilHalfIsEmpty) {
  TurnCut cut(100, 0);
  for (int i = 0; i < 10; ++i) {
    cut.begin_turn();
    cut.add(10);
  }
  EXPECT_EQ(cut.n_dropped(), 0U) << "what fits stays";
  cut.begin_turn();
  cut.add(10);
  EXPECT_EQ(cut.n_dropped(), 6U);
  EXPECT_EQ(cut.n_tokens(), 50U);
  for (int i = 0; i < 5; ++i) {
    cut.begin_turn();
    cut.add(10);
    EXPECT_EQ(cut.n_dropped(), 6U) << "it has room again";
  }
}

TEST(TurnCut, KeepsRoomForWhatComesBack) {
  TurnCut cut(100, 20);
  cut.begin_turn();
  cut.add(90);
  cut.begin_turn();
  cut.add(10);
  EXPECT_EQ(cut.n_dropped(), 0U) << "nothing has left, so nothing can come back";
  cut.begin_turn();
  cut.add(10);
  EXPECT_EQ(cut.n_dropped(), 1U);
  cut.add_recalled(20);
  EXPECT_EQ(cut.n_tokens(), 40U);
  cut.add(41);
  EXPECT_EQ(cut.n_dropped(), 2U);
}

TEST(TurnCut, NeverLetsTheLastTurnLeave) {
  TurnCut cut(100, 0);
  cut.begin_turn();
  cut.add(1000);
  EXPECT_EQ(cut.n_dropped(), 0U);
  cut.begin_turn();
  cut.add(500);
  cut.add(500);
  EXPECT_EQ(cut.n_dropped(), 1U);
  EXPECT_EQ(cut.n_tokens(), 1000U);
}

// More messages at the end never change where a conversation was cut before.
TEST(TurnCut, DependsOnWhatCameBeforeOnly) {
  std::mt19937 random(7);
  std::vector<std::pair<bool, std::size_t>> messages;
  for (int i = 0; i < 400; ++i) messages.emplace_back(i == 0 || random() % 3 == 0, random() % 60);
  const auto dropped_after = [&](std::size_t n) {
    TurnCut cut(300, 30);
    for (std::size_t i = 0; i < n; ++i) {
      if (messages[i].first) cut.begin_turn();
      cut.add(messages[i].second);
    }
    return cut.n_dropped();
  };
  TurnCut whole(300, 30);
  std::size_t n_cuts = 0;
  std::size_t n_before = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].first) whole.begin_turn();
    whole.add(messages[i].second);
    ASSERT_EQ(whole.n_dropped(), dropped_after(i + 1));
    n_cuts += whole.n_dropped() > n_before ? 1 : 0;
    n_before = whole.n_dropped();
  }
  EXPECT_GT(n_cuts, 20U);
  EXPECT_LT(n_cuts, 200U) << "between two cuts there are turns";
}

}  // namespace
}  // namespace slipstream
