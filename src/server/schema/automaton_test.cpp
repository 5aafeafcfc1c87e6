#include "server/schema/automaton.h"

#include <gtest/gtest.h>

#include <random>

namespace slipstream {
namespace {

TEST(Automaton, WithoutWordsIsAllTextsThatContainNoneOfThem) {
  std::mt19937 random(1);
  const auto word = [&random](unsigned n_max) {
    std::string text;
    for (auto n = random() % (n_max + 1); n > 0; --n) text += random() % 2 == 0 ? "a" : "é";
    return text;
  };
  int n_contained = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> words;
    for (auto n = 1 + random() % 3; n > 0; --n) words.push_back("a" + word(3));
    const Result<Automaton> automaton = Automaton::without(words);
    ASSERT_TRUE(automaton.has_value());
    for (int i = 0; i < 50; ++i) {
      const std::string text = word(9);
      bool contains_one = false;
      for (const std::string& one : words) contains_one = contains_one || text.contains(one);
      n_contained += contains_one ? 1 : 0;
      EXPECT_EQ(automaton->contains(text), !contains_one) << text << " " << words[0];
    }
  }
  EXPECT_GT(n_contained, 1000);
  EXPECT_TRUE(Automaton::without({"</a>"})->contains("</b>\n😀"));
}

}  // namespace
}  // namespace slipstream
