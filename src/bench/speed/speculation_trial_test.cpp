#include "bench/speed/speculation_trial.h"

#include <gtest/gtest.h>

namespace slipstream::bench {
namespace {

const std::vector<std::vector<Token>> kTexts = {{1, 2, 3, 4, 5}, {1, 2, 9, 8, 7}};
constexpr Token kSaid = 77;

Token guess(const std::vector<Token>& tokens, const std::vector<Token>& guessed, bool is_right,
            Token said = kSaid) {
  return replaced_guess(kTexts, tokens, guessed, said, is_right);
}

TEST(ReplacedGuess, IsTheNextTokenOfItsText) {
  EXPECT_EQ(guess({1, 2, 3}, {}, true), 4);
  EXPECT_EQ(guess({1, 2, 9}, {}, true), 8);
  EXPECT_EQ(guess({1, 2, 9}, {8}, true), 7);
}

TEST(ReplacedGuess, IsWrongIfItIsToBe) {
  EXPECT_EQ(guess({1, 2, 3}, {}, false), kSaid);
  EXPECT_NE(guess({1, 2, 3}, {}, false, 4), 4) << "though the model said it";
}

TEST(ReplacedGuess, IsNotRightBehindAWrongOne) {
  EXPECT_EQ(guess({1, 2, 9}, {6}, true), kSaid);
  EXPECT_NE(guess({1, 2, 9}, {6}, true, 7), 7);
}

TEST(ReplacedGuess, IsTheModelsOwnWhereThereIsNoText) {
  EXPECT_EQ(guess({5, 5}, {}, true), kSaid);
  EXPECT_EQ(guess({1, 2, 3, 4}, {5}, true), kSaid) << "beyond the end";
}

}  // namespace
}  // namespace slipstream::bench
