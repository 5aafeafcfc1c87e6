#include "engine/state/checkpoints.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <list>

namespace slipstream {
namespace {

using Tokens = std::vector<Token>;

constexpr std::size_t kMany = 1'000'000;

std::vector<std::byte> state_of(int value, std::size_t n_bytes = 10) {
  return std::vector(n_bytes, static_cast<std::byte>(value));
}

int value_of(const Checkpoints::Match& match) {
  return match.n_tokens == 0 ? -1 : static_cast<int>(match.state.front());
}

TEST(Checkpoints, FindsTheLongestPrefixThatEndsAtOne) {
  Checkpoints checkpoints(kMany);
  checkpoints.insert(1, Tokens{5, 6}, state_of(2));
  checkpoints.insert(1, Tokens{5, 6, 7, 8}, state_of(4));
  EXPECT_EQ(value_of(checkpoints.match(1, Tokens{5, 6, 7, 8, 9})), 4);
  EXPECT_EQ(checkpoints.match(1, Tokens{5, 6, 7, 8, 9}).n_tokens, 4);
  EXPECT_EQ(checkpoints.match(1, Tokens{5, 6, 7}).n_tokens, 2) << "a state cannot be shortened";
  EXPECT_EQ(checkpoints.match(1, Tokens{5}).n_tokens, 0);
  EXPECT_EQ(checkpoints.match(1, Tokens{}).n_tokens, 0);
  EXPECT_EQ(checkpoints.match(1, Tokens{6, 5}).n_tokens, 0);
}

TEST(Checkpoints, ForgetsOneThatIsOfNoUse) {
  Checkpoints checkpoints(kMany);
  checkpoints.insert(1, Tokens{5, 6}, state_of(1));
  checkpoints.erase(1, Tokens{5});  // there is none
  checkpoints.erase(2, Tokens{5, 6});
  EXPECT_EQ(checkpoints.size(), 1U);
  checkpoints.erase(1, Tokens{5, 6});
  EXPECT_EQ(checkpoints.size(), 0U);
  EXPECT_EQ(checkpoints.n_bytes(), 0U);
}

TEST(Checkpoints, SaltsNeverMix) {
  Checkpoints checkpoints(kMany);
  checkpoints.insert(1, Tokens{5, 6}, state_of(1));
  EXPECT_EQ(checkpoints.match(2, Tokens{5, 6}).n_tokens, 0);
}

TEST(Checkpoints, ALaterStateReplacesAnEarlierOne) {
  Checkpoints checkpoints(kMany);
  checkpoints.insert(1, Tokens{5}, state_of(1, 10));
  checkpoints.insert(1, Tokens{5}, state_of(2, 20));
  EXPECT_EQ(value_of(checkpoints.match(1, Tokens{5})), 2);
  EXPECT_EQ(checkpoints.size(), 1U);
  EXPECT_EQ(checkpoints.n_bytes(), 20 + sizeof(Token));
}

TEST(Checkpoints, DropsTheLeastRecentlyUsed) {
  Checkpoints checkpoints(3 * (10 + sizeof(Token)));
  for (const Token token : {1, 2, 3}) checkpoints.insert(1, Tokens{token}, state_of(token));
  EXPECT_EQ(value_of(checkpoints.match(1, Tokens{1})), 1);
  checkpoints.insert(1, Tokens{4}, state_of(4));
  EXPECT_EQ(checkpoints.match(1, Tokens{2}).n_tokens, 0);
  EXPECT_EQ(value_of(checkpoints.match(1, Tokens{1})), 1);
  EXPECT_EQ(value_of(checkpoints.match(1, Tokens{3})), 3);
  EXPECT_EQ(value_of(checkpoints.match(1, Tokens{4})), 4);
}

TEST(Checkpoints, AStateLargerThanEverythingIsNotKept) {
  Checkpoints checkpoints(50);
  checkpoints.insert(1, Tokens{1}, state_of(1, 20));
  checkpoints.insert(1, Tokens{2}, state_of(2, 51));
  EXPECT_EQ(checkpoints.match(1, Tokens{2}).n_tokens, 0);
  EXPECT_EQ(value_of(checkpoints.match(1, Tokens{1})), 1) << "nothing had to go for it";
}

TEST(CheckpointsDeathTest, AStateBelongsToTokens) {
  Checkpoints checkpoints(50);
  EXPECT_DEATH(checkpoints.insert(1, Tokens{}, state_of(1)), "after nothing");
}

// Compared with a list in the order of use.
RC_GTEST_PROP(CheckpointsProperty, AreAListOfStates, ()) {
  struct Saved {
    Salt salt;
    Tokens tokens;
    int value;
    std::size_t n_bytes;
  };
  const auto bytes_max = *rc::gen::inRange<std::size_t>(0, 300);
  Checkpoints checkpoints(bytes_max);
  std::list<Saved> naive;  // least recently used first
  const auto n_bytes = [&] {
    std::size_t n = 0;
    for (const Saved& saved : naive) n += saved.n_bytes;
    return n;
  };
  const int n_operations = *rc::gen::inRange(0, 60);
  for (int i = 0; i < n_operations; ++i) {
    const auto salt = *rc::gen::inRange<Salt>(0, 2);
    const auto tokens =
        *rc::gen::resize(6, rc::gen::container<Tokens>(rc::gen::inRange<Token>(0, 2)));
    if (!tokens.empty() && *rc::gen::arbitrary<bool>()) {
      const auto n_state = *rc::gen::inRange<std::size_t>(1, 60);
      checkpoints.insert(salt, tokens, state_of(i, n_state));
      std::erase_if(naive, [&](const Saved& s) { return s.salt == salt && s.tokens == tokens; });
      const Saved saved{salt, tokens, i, n_state + tokens.size() * sizeof(Token)};
      if (saved.n_bytes <= bytes_max) {
        naive.push_back(saved);
        while (n_bytes() > bytes_max) naive.pop_front();
      }
    } else {
      auto best = naive.end();
      for (auto it = naive.begin(); it != naive.end(); ++it) {
        if (it->salt == salt && std::ranges::starts_with(tokens, it->tokens) &&
            (best == naive.end() || it->tokens.size() > best->tokens.size())) {
          best = it;
        }
      }
      const Checkpoints::Match match = checkpoints.match(salt, tokens);
      RC_ASSERT(value_of(match) == (best == naive.end() ? -1 : best->value));
      if (best != naive.end()) {
        RC_ASSERT(match.n_tokens == static_cast<int>(best->tokens.size()));
        naive.splice(naive.end(), naive, best);
      }
    }
    RC_ASSERT(checkpoints.size() == naive.size());
    RC_ASSERT(checkpoints.n_bytes() == n_bytes());
  }
}

std::vector<int> places(int n_prompt) {
  std::vector<int> all;
  for (int n = 0; n < n_prompt - 1;) all.push_back(n = next_checkpoint(n, n_prompt));
  return all;
}

TEST(Checkpoints, PlacesWithinAPrompt) {
  EXPECT_EQ(places(2), (std::vector{1}));
  EXPECT_EQ(places(256), (std::vector{255}));
  EXPECT_EQ(places(1100), (std::vector{256, 512, 768, 1024, 1099}));
  EXPECT_EQ(places(8193), (std::vector{256, 512, 1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192}));
  EXPECT_EQ(next_checkpoint(0, 1), 0);
  EXPECT_EQ(next_checkpoint(500, 400), 399);
  for (const int n_prompt : {1000, 10'000, 100'000, 1'000'000}) {
    EXPECT_LE(places(n_prompt).size(), 24U) << n_prompt;
    EXPECT_EQ(places(n_prompt).back(), n_prompt - 1);
  }
}

}  // namespace
}  // namespace slipstream
