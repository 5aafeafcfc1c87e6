#include "engine/speculation/ngram_drafter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

namespace slipstream {
namespace {

// As ngram_drafter.h says it, without any index.
Draft naive(std::span<const Token> tokens, int n_max) {
  Draft draft;
  const auto n_common = [&](std::size_t place) {
    int n = 0;
    while (n < NgramDrafter::kMatchMax && static_cast<std::size_t>(n) < place &&
           tokens[place - 1 - static_cast<std::size_t>(n)] ==
               tokens[tokens.size() - 1 - static_cast<std::size_t>(n)]) {
      ++n;
    }
    return n;
  };
  std::size_t best = 0;
  int n_places = 0;
  for (std::size_t place = tokens.empty() ? 0 : tokens.size() - 1;
       place > 0 && n_places < NgramDrafter::kPlacesMax; --place) {
    const int n = n_common(place);
    if (n < NgramDrafter::kMatchMin) continue;
    ++n_places;
    if (n <= draft.n_matched) continue;
    draft.n_matched = n;
    best = place;
  }
  if (best == 0) return draft;
  std::vector<Token> text(tokens.begin(), tokens.end());
  for (int i = 0; i < n_max; ++i) {
    text.push_back(text[best + static_cast<std::size_t>(i)]);
    draft.tokens.push_back(text.back());
  }
  return draft;
}

TEST(NgramDrafter, GoesOnAsBefore) {
  NgramDrafter drafter;
  const std::vector<Token> tokens = {1, 2, 3, 4, 5, 6, 7, 9, 2, 3, 4};
  const Draft draft = drafter.propose(tokens, 3);
  EXPECT_EQ(draft.tokens, (std::vector<Token>{5, 6, 7}));
  EXPECT_EQ(draft.n_matched, 3);
}

TEST(NgramDrafter, HasNothingToSayOfWhatIsNew) {
  NgramDrafter drafter;
  EXPECT_TRUE(drafter.propose({}, 4).tokens.empty());
  EXPECT_TRUE(drafter.propose(std::vector<Token>{1, 2}, 4).tokens.empty());
  EXPECT_TRUE(drafter.propose(std::vector<Token>{1, 2, 3, 4, 5, 6, 2, 3}, 4).tokens.empty());
}

TEST(NgramDrafter, PrefersTheLongerMatchToTheNewer) {
  NgramDrafter drafter;
  const std::vector<Token> tokens = {7, 1, 2, 3, 40, 8, 1, 2, 3, 50, 7, 1, 2, 3};
  EXPECT_EQ(drafter.propose(tokens, 1).tokens, std::vector<Token>{40});
  EXPECT_EQ(drafter.propose(tokens, 1).n_matched, 4);
}

TEST(NgramDrafter, GoesOnRepeating) {
  NgramDrafter drafter;
  EXPECT_EQ(drafter.propose(std::vector<Token>{1, 2, 1, 2, 1, 2}, 5).tokens,
            (std::vector<Token>{1, 2, 1, 2, 1}));
}

// Few different tokens, so that there are many places to choose from.
RC_GTEST_PROP(NgramDrafterProperty, FindsWhatASearchFinds, ()) {
  const auto n_different = *rc::gen::inRange(1, 6);
  auto tokens = *rc::gen::container<std::vector<Token>>(rc::gen::inRange(0, n_different));
  const auto more = *rc::gen::container<std::vector<Token>>(rc::gen::inRange(0, n_different));
  NgramDrafter drafter;
  // Learned in pieces, each piece twice.
  for (std::size_t i = 0; i <= more.size(); ++i) {
    const int n_max = *rc::gen::inRange(0, 20);
    const Draft found = drafter.propose(tokens, n_max);
    const Draft expected = naive(tokens, n_max);
    RC_ASSERT(found.tokens == expected.tokens);
    RC_ASSERT(found.n_matched == expected.n_matched);
    const std::size_t n = std::min<std::size_t>(more.size() - i, i % 4);
    tokens.insert(tokens.end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(n));
  }
}

// The limit: a prompt as long as contexts are, whose tokens are all new or all the same.
TEST(NgramDrafter, TakesLittleMemoryAndTimeForALongPrompt) {
  constexpr std::size_t kTokens = 262'144;
  std::mt19937 random(3);
  std::vector<Token> any(kTokens);
  for (Token& token : any) token = static_cast<Token>(random() % 150'000);
  for (const std::vector<Token>& tokens : {any, std::vector<Token>(kTokens, 5)}) {
    NgramDrafter drafter;
    int n_calls = 0;
    Draft draft;
    const auto started = std::chrono::steady_clock::now();
    while (n_calls * NgramDrafter::kLearnedMax <= std::ssize(tokens)) {
      EXPECT_TRUE(draft.tokens.empty()) << "not all is learned yet";
      draft = drafter.propose(tokens, 8);
      ++n_calls;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    EXPECT_LT(drafter.n_bytes(), 20 * kTokens + 4096);
    EXPECT_LT(took.count(), 5) << "sanitizers included";
    EXPECT_EQ(draft.tokens.empty(), tokens.front() != 5);
  }
}

}  // namespace
}  // namespace slipstream
