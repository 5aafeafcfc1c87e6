#include "engine/prefixes/seen_prefixes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace slipstream {
namespace {

std::vector<Token> tokens_from(Token first, std::size_t n) {
  std::vector<Token> tokens(n);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(SeenPrefixes, FindsWholeBlocksUpToTheFirstThatDiffers) {
  SeenPrefixes seen;
  std::vector<Token> tokens = tokens_from(0, 100);
  EXPECT_EQ(seen.find(1, tokens), 0);
  seen.remember(1, tokens);
  EXPECT_EQ(seen.find(1, tokens), 96);
  EXPECT_EQ(seen.find(1, tokens_from(0, 200)), 96);
  EXPECT_EQ(seen.find(1, tokens_from(0, 15)), 0);
  tokens[40] = 7;
  EXPECT_EQ(seen.find(1, tokens), 32);
  tokens[0] = 7;
  EXPECT_EQ(seen.find(1, tokens), 0) << "the same tokens behind others are not the same";
}

TEST(SeenPrefixes, TenantsSeeTheirOwn) {
  SeenPrefixes seen;
  const std::vector<Token> tokens = tokens_from(0, 64);
  seen.remember(1, tokens);
  EXPECT_EQ(seen.find(2, tokens), 0);
}

TEST(SeenPrefixes, ForgetsWhatWasNotMetForLong) {
  SeenPrefixes seen(16);
  const std::vector<Token> often = tokens_from(0, 32);
  const std::vector<Token> once = tokens_from(1000, 32);
  seen.remember(1, once);
  for (Token i = 2; i < 20; ++i) {
    seen.remember(1, often);
    seen.remember(1, tokens_from(1000 * i, 32));
    EXPECT_EQ(seen.find(1, often), 32) << i;
  }
  EXPECT_EQ(seen.find(1, once), 0);
  EXPECT_EQ(seen.find(1, tokens_from(19000, 32)), 32);
}

// One that is longer than all that is remembered ends with what was met last.
TEST(SeenPrefixes, IsBounded) {
  SeenPrefixes seen(16);
  seen.remember(1, tokens_from(0, 1600));
  EXPECT_LT(seen.find(1, tokens_from(0, 1600)), 16 * 16);
}

}  // namespace
}  // namespace slipstream
